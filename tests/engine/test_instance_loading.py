"""An instance loads what it needs: libraries for what its settings do not name cost memory and time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.api.people import SECRET

ALL = ("alembic", "cryptography", "joserfc", "psycopg", "redis")
LOADED = f"""
import sys
print(*(name for name in {ALL!r} if name in sys.modules))
"""
START = """
import asyncio
from noonday.instance.door import opened
from noonday.instance.process import Instance
from noonday.settings import load
from noonday.store import migrate

async def main(url, **more):
    instance, stop = Instance(load(database_url=url, port=0, **more)), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(instance.run(stop))
        await instance.ready.wait()
        stop.set()
"""


def loaded_by(program: str) -> set[str]:
    made = subprocess.run(
        [sys.executable, "-c", START + program + LOADED],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert made.returncode == 0, made.stderr
    return set(made.stdout.splitlines()[-1].split())


def test_an_instance_on_sqlite_needs_none_of_them(sqlite_url: str) -> None:
    assert loaded_by(f"asyncio.run(main({sqlite_url!r}))") == set()


@pytest.mark.parametrize("url", ["sqlite", "postgres"])
def test_a_database_of_this_version_is_left_alone(url: str, request: pytest.FixtureRequest) -> None:
    found = loaded_by(f"migrate.upgrade({request.getfixturevalue(f'{url}_url')!r})")
    assert "alembic" not in found


def test_an_instance_with_tokens_can_read_them(sqlite_url: str) -> None:
    found = loaded_by(f"asyncio.run(main({sqlite_url!r}, jwt_secret={SECRET!r}))")
    assert found == {"cryptography", "joserfc"}
