"""A real server on a real port, with a worker's hands moved by the tests."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI

from noonday.api.app import create_app
from noonday.api.services import ApiServices
from noonday.client import NoondayClient
from noonday.clock import SystemClock
from noonday.control.system import LocalStatus
from noonday.instance.server import Server
from noonday.instance.sockets import bind, url_of
from noonday.store.database import Database
from tests.factories import NOON

PATIENCE = 20.0


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """Answers on a free port, in a thread of its own, until the block is left."""
    sock = bind("127.0.0.1", 0)
    loop = asyncio.new_event_loop()
    started = threading.Event()
    servers: list[Server] = []

    async def run() -> None:
        server = Server(app, timedelta(seconds=1))
        servers.append(server)
        task = asyncio.create_task(server.serve([sock]))
        await server.ready.wait()
        started.set()
        await task

    thread = threading.Thread(target=lambda: loop.run_until_complete(run()), name="api under test")
    thread.start()
    assert started.wait(PATIENCE)
    try:
        yield url_of(sock, "127.0.0.1")
    finally:
        services: Any = app.state.services
        loop.call_soon_threadsafe(services.close)
        servers[0].should_exit = True
        thread.join(PATIENCE)
        assert not thread.is_alive()
        loop.close()
        sock.close()


@pytest.fixture
def serve(sqlite_db: Database) -> Iterator[Callable[..., str]]:
    """Starts a server over the test's database; more settings may be given."""
    status = LocalStatus(instance_id="instance-1", started_at=NOON, slots=10)
    running = []

    def start(**settings: Any) -> str:
        services = ApiServices(db=sqlite_db, clock=SystemClock(), status=lambda: status, **settings)
        running.append(serving(create_app(services)))
        return running[-1].__enter__()

    yield start
    for one in reversed(running):
        one.__exit__(None, None, None)


@pytest.fixture
def url(serve: Callable[..., str]) -> str:
    return serve()


@pytest.fixture
def client(url: str) -> Iterator[NoondayClient]:
    with NoondayClient(url) as made:
        yield made
