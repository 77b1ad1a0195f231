"""An instance loads what it needs: libraries for what its settings do not name cost memory and time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.api.people import SECRET

ALL = ("alembic", "cryptography", "joserfc", "noonday.api.openapi", "psycopg", "redis", "rich")
LOADED = f"""
import sys
print(*(name for name in {ALL!r} if name in sys.modules))
"""
START = """
import asyncio, sys
from noonday.instance import Instance
from noonday.settings import load
from noonday.store import migrate

async def main(url, **more):
    instance, stop = Instance(load(database_url=url, port=0, **more)), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(instance.run(stop))
        await instance.ready.wait()
        stop.set()
"""


def printed(program: str) -> list[str]:
    made = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=100
    )
    assert made.returncode == 0, made.stderr
    return [line.rstrip() for line in made.stdout.splitlines() if "action=" not in line]


def loaded_by(program: str) -> set[str]:
    return set(printed(START + program + LOADED)[-1].split())


def test_an_instance_on_sqlite_needs_none_of_them(sqlite_url: str) -> None:
    assert loaded_by(f"asyncio.run(main({sqlite_url!r}))") == set()


@pytest.mark.parametrize("url", ["sqlite", "postgres"])
def test_a_database_of_this_version_is_left_alone(url: str, request: pytest.FixtureRequest) -> None:
    found = loaded_by(f"migrate.upgrade({request.getfixturevalue(f'{url}_url')!r})")
    assert "alembic" not in found


def test_an_instance_with_tokens_can_read_them(sqlite_url: str) -> None:
    found = loaded_by(f"asyncio.run(main({sqlite_url!r}, jwt_secret={SECRET!r}))")
    assert found == {"cryptography", "joserfc"}


BEGIN = """
from noonday.engine.engine import Engine

begin = Engine.begin

async def begun(engine):
    print("begun with", *(name for name in ("fastapi", "noonday.api.app") if name in sys.modules))
    await begin(engine)

Engine.begin = begun
"""


def test_the_engine_does_not_wait_for_the_api(sqlite_url: str) -> None:
    lines = printed(START + BEGIN + f"asyncio.run(main({sqlite_url!r}))\nprint('fastapi' in sys.modules)")
    assert lines == ["begun with", "True"]


def test_what_the_log_does_without_is_there_for_tasks() -> None:
    assert printed(START + "import rich\nprint(rich.__name__)") == ["rich"]


def test_no_shape_of_an_answer_is_built_before_the_document() -> None:
    program = """
from noonday.api.shapes import JobShape
from tools.openapi import application

app = application()
print(JobShape.__pydantic_complete__)
print("JobShape" in app.openapi()["components"]["schemas"])
"""
    assert printed(program) == ["False", "True"]
