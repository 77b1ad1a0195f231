"""An instance in this very process: its order of start and stop, and what it says when it cannot start."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.request import Request, urlopen

import pytest

from noonday.domain.errors import Invalid, Unavailable
from noonday.instance import Instance
from noonday.instance.sockets import bind, url_of
from noonday.settings import Settings, load
from noonday.store import instances
from noonday.store.database import Database


def settings(url: str, **changes: object) -> Settings:
    return load(database_url=url, port=0, **changes)


@asynccontextmanager
async def running(made: Settings) -> AsyncIterator[Instance]:
    instance, stop = Instance(made), asyncio.Event()
    life = asyncio.create_task(instance.run(stop))
    ready = asyncio.create_task(instance.ready.wait())
    async with asyncio.timeout(40):
        await asyncio.wait([life, ready], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    if life.done():
        life.result()
    try:
        yield instance
    finally:
        stop.set()
        async with asyncio.timeout(40):
            assert await life is True


async def ask(url: str, body: object = None) -> Any:
    def call() -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urlopen(Request(url, data, {"Content-Type": "application/json"}), timeout=20) as answer:
            return json.loads(answer.read())

    return await asyncio.to_thread(call)


async def test_it_serves_runs_and_leaves_no_trace_of_itself(empty_url: str) -> None:
    async with running(settings(empty_url, instance_id="one")) as instance:
        assert (await ask(instance.url + "/health/ready"))["status"] == "healthy"
        job = await ask(
            instance.url + "/api/v2/jobs",
            {"name": "hello", "schedule_type": "immediate", "target": {"type": "command", "argv": ["true"]}},
        )
        async with asyncio.timeout(40):
            while True:
                page = await ask(f"{instance.url}/api/v2/jobs/{job['id']}/executions")
                if page["executions"] and page["executions"][0]["status"] == "completed":
                    break
                await asyncio.sleep(0.02)
        health = await ask(instance.url + "/api/v2/scheduler/health")
        assert (health["instance_id"], health["workers_active"], health["running"]) == ("one", 10, True)
        db = Database(empty_url)
        try:
            [row] = db.read_now(instances.everyone)
            assert (row.id, row.roles, row.state) == ("one", ("api", "scheduler", "worker"), "running")
        finally:
            db.close_now()
    db = Database(empty_url)
    try:
        assert db.read_now(instances.everyone) == ()
    finally:
        db.close_now()


async def test_it_runs_the_api_alone_when_the_scheduler_is_switched_off(sqlite_url: str) -> None:
    async with running(settings(sqlite_url, scheduler_enabled=False)) as instance:
        health = await ask(instance.url + "/api/v2/scheduler/health")
        assert (health["running"], health["workers_active"], health["last_check_at"]) == (False, 0, None)


async def test_it_names_the_port_that_is_taken(sqlite_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        made = load(database_url=sqlite_url, port=port)
        with pytest.raises(Invalid, match=f"PORT: cannot listen on {port}"):
            await Instance(made).run(asyncio.Event())


async def test_it_names_the_task_module_that_cannot_be_imported(sqlite_url: str) -> None:
    made = settings(sqlite_url, task_modules=("no_such_module",))
    with pytest.raises(Invalid, match="TASK_MODULES: 'no_such_module' cannot be imported"):
        await Instance(made).run(asyncio.Event())


async def test_it_gives_up_waiting_for_its_database_when_it_is_told_to_stop() -> None:
    stop = asyncio.Event()
    life = asyncio.create_task(Instance(settings("postgresql://nobody@127.0.0.1:1/nothing")).run(stop))
    await asyncio.sleep(0)
    stop.set()
    with pytest.raises(Unavailable, match="cannot be used"):
        async with asyncio.timeout(20):
            await life


def test_it_finds_a_free_port_and_says_which() -> None:
    with bind("127.0.0.1", 0) as sock:
        assert url_of(sock, "127.0.0.1") == f"http://127.0.0.1:{sock.getsockname()[1]}"
    with bind("::1", 0) as sock:
        assert url_of(sock, "::1").startswith("http://[::1]:")
