"""The road on both servers: the newest that is found, and the oldest that is promised."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
import structlog

from tests.queue.roads import Road, opened
from tests.servers import Server, old_redis_binary, start_redis

KINDS = ["found", "old"]


def binary_of(kind: str) -> Path | None:
    if kind == "found":
        return None
    if (binary := old_redis_binary()) is None:
        pytest.skip("there is no wheel with Redis 6.2 for this Python")
    return binary


@pytest.fixture(scope="session")
def old_server() -> Iterator[Server]:
    server = start_redis(own=True, binary=binary_of("old"))
    yield server
    server.stop()


@pytest.fixture(params=KINDS)
def server_url(request: pytest.FixtureRequest) -> str:
    """A server that all tests share."""
    server: Server = request.getfixturevalue("redis_server" if request.param == "found" else "old_server")
    return server.url


@pytest.fixture(params=KINDS)
def own_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server that may be flushed, stopped and changed."""
    server = start_redis(own=True, binary=binary_of(request.param))
    yield server
    server.stop()


@pytest.fixture
async def road(server_url: str) -> AsyncIterator[Road]:
    async with opened(server_url) as link:
        made = Road(link)
        yield made
        await made.forget()


@pytest.fixture
async def own_road(own_server: Server) -> AsyncIterator[Road]:
    async with opened(own_server.url) as link:
        yield Road(link)


@pytest.fixture
def log_lines(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """What was logged so far, wherever the tests before have sent log lines."""

    def lines() -> str:
        told = capsys.readouterr()
        return told.out + told.err

    before = structlog.get_config()
    structlog.reset_defaults()
    yield lines
    structlog.configure(**before)
