"""A real instance that asks who calls: keys and tokens open it, and its log says how open it is."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from httpx2 import AsyncClient
from structlog.testing import capture_logs

from noonday.api.door.tokens import signed
from noonday.clock import SystemClock
from noonday.control.keys import Keys
from noonday.domain.access import Caller, Role
from noonday.settings import Settings
from noonday.store.database import Database
from tests.engine.test_instance_life import running, settings

SECRET = "bPzqGZ7V0HnJvOq6vR0z1H4sQxLk2m9d"


def closed(url: str, **changes: object) -> Settings:
    return settings(url, scheduler_enabled=False, auth_enabled=True, **changes)


def told(logs: list[Any]) -> list[tuple[str, bool, str]]:
    return [
        (line["log_level"], line["open"], line["event"]) for line in logs if line.get("action") == "access"
    ]


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


async def test_keys_and_tokens_open_a_closed_instance(sqlite_url: str) -> None:
    made = closed(sqlite_url, jwt_secret=SECRET)
    clock = SystemClock()
    ada = Caller(name="ada", role=Role.OPERATOR)
    token = signed(SECRET, ada, made.token_rules, clock.now(), timedelta(minutes=5))
    db = Database(sqlite_url)
    keys = Keys(db, clock)
    with capture_logs() as logs:
        async with running(made) as instance, AsyncClient(base_url=instance.url) as client:
            assert (await client.get("/health/ready")).status_code == 200
            for path in ("/api/v2/jobs", "/metrics", "/nowhere"):
                assert (await client.get(path)).status_code == 401
            found = (await client.get("/api/v2/whoami", headers=bearer(token))).json()
            assert (found["name"], found["role"], found["open"]) == ("ada", "operator", False)
            key, text = await keys.create("bob", Role.VIEWER)
            async with asyncio.timeout(10):
                while (await client.get("/metrics", headers={"X-API-Key": text})).status_code != 200:
                    await asyncio.sleep(0.05)
            await keys.revoke(key.id)
            async with asyncio.timeout(10):
                while (await client.get("/metrics", headers={"X-API-Key": text})).status_code == 200:
                    await asyncio.sleep(0.05)
            assert (await client.get("/metrics", headers={"X-API-Key": text})).status_code == 401
    await db.close()
    assert told(logs) == [("info", False, "the API asks everybody for a key or a token")]
    assert text not in str(logs)
    assert token not in str(logs)


async def test_it_says_that_nobody_can_get_in_yet(sqlite_url: str) -> None:
    with capture_logs() as logs:
        async with running(closed(sqlite_url)):
            pass
    assert [line[0] for line in told(logs)] == ["info", "warning"]
    assert "noonday key create" in told(logs)[1][2]


@pytest.mark.parametrize(("host", "level"), [("127.0.0.1", "info"), ("0.0.0.0", "warning")])
async def test_it_says_that_it_is_open(sqlite_url: str, host: str, level: str) -> None:
    made = settings(sqlite_url, scheduler_enabled=False, host=host, allow_open=True)
    with capture_logs() as logs:
        async with running(made):
            pass
    [(found, is_open, words)] = told(logs)
    assert (found, is_open) == (level, True)
    assert "the API is open" in words
