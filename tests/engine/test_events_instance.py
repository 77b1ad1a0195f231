"""A real instance with its real server: what runs there is heard over HTTP, and the stream ends with it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from httpx2 import AsyncClient, Response

from noonday.store import events
from noonday.store.database import Database
from tests.engine.test_instance_life import ask, running, settings

PATIENCE = 30


@asynccontextmanager
async def listening(url: str, **query: str) -> AsyncIterator[tuple[Response, AsyncIterator[Any]]]:
    async with (
        AsyncClient(timeout=PATIENCE) as client,
        client.stream("GET", url + "/api/events", params=query) as answer,
    ):
        assert answer.status_code == 200
        yield answer, _events(answer)


async def _events(answer: Response) -> AsyncIterator[Any]:
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def add(url: str, name: str, argv: list[str]) -> Any:
    target = {"type": "command", "argv": argv}
    return await ask(
        url + "/api/v2/jobs",
        {"name": name, "schedule_type": "immediate", "target": target, "max_retries": 0},
    )


async def test_runs_are_heard_and_the_stream_ends_with_the_instance(empty_url: str) -> None:
    async with asyncio.timeout(60):
        async with asyncio.TaskGroup() as group, running(settings(empty_url)) as instance:
            heard: list[Any] = []
            enough, over = asyncio.Event(), asyncio.Event()

            async def listen() -> None:
                async with listening(instance.url, topics="jobs,executions") as (_, found):
                    joined.set()
                    async for event in found:
                        heard.append(event)
                        if sum(one["type"] == "noonday.execution.ended" for one in heard) == 2:
                            enough.set()
                    over.set()

            joined = asyncio.Event()
            group.create_task(listen())
            await joined.wait()
            good = await add(instance.url, "good", ["true"])
            bad = await add(instance.url, "bad", ["false"])
            await enough.wait()
            assert not over.is_set()
            mine = [one for one in heard if one["data"].get("job_id") == good["id"]]
            assert [one["type"].removeprefix("noonday.") for one in mine] == [
                "job.created",
                "execution.started",
                "execution.ended",
            ]
            ends = {
                one["data"]["job_id"]: one["data"]["status"] for one in heard if one["type"].endswith("ended")
            }
            assert ends == {good["id"]: "completed", bad["id"]: "failed"}
        assert over.is_set()


async def test_the_life_of_an_instance_is_told(sqlite_url: str) -> None:
    async with running(settings(sqlite_url, instance_id="one")):
        pass
    db = Database(sqlite_url)
    try:
        look = await db.read(lambda conn: events.look(conn, lambda event: event, 0, 100))
    finally:
        await db.close()
    kinds = [event.kind for event in look.events]
    assert kinds[0] == "instance.started"
    assert kinds[-1] == "instance.stopped"
    (elected,) = [event for event in look.events if event.kind == "leader.elected"]
    assert elected.payload == {"instance": "one", "term": 1}


async def test_without_events_nothing_of_runs_is_written(sqlite_url: str) -> None:
    async with running(settings(sqlite_url, events_keep=0)) as instance:
        job = await add(instance.url, "good", ["true"])
        async with asyncio.timeout(PATIENCE):
            while True:
                runs = await ask(f"{instance.url}/api/v2/jobs/{job['id']}/executions")
                if any(run["status"] == "completed" for run in runs["executions"]):
                    break
                await asyncio.sleep(0.05)
    db = Database(sqlite_url)
    try:
        look = await db.read(lambda conn: events.look(conn, lambda event: event, 0, 100))
    finally:
        await db.close()
    assert not [event for event in look.events if event.kind.startswith("execution")]
