"""An instance as its settings say: who may call from a browser, how often, and what it remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from httpx2 import AsyncClient

from noonday.instance import Instance
from noonday.settings import load

PAGE = "https://ui.example"
BODY = {
    "name": "hello",
    "schedule_type": "manual",
    "overlap": "allow",
    "target": {"type": "command", "argv": ["true"]},
}


@asynccontextmanager
async def running(url: str) -> AsyncIterator[AsyncClient]:
    made = load(database_url=url, port=0, frontend_urls=(PAGE,), trigger_rate=2, idempotency_ttl="1h")
    instance, stop = Instance(made), asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(instance.run(stop))
        async with asyncio.timeout(40):
            await instance.ready.wait()
        async with AsyncClient(base_url=instance.url, timeout=60) as client:
            yield client
        stop.set()


async def test_it_has_the_manners_that_its_settings_ask_for(sqlite_url: str) -> None:
    key = {"Idempotency-Key": "k-1"}
    async with running(sqlite_url) as client:
        first = await client.post("/api/v2/jobs", json=BODY, headers={"Origin": PAGE, **key})
        assert first.status_code == 201, first.text
        assert first.headers["Access-Control-Allow-Origin"] == PAGE
        ran = await client.post("/api/v2/jobs/hello/force-run", headers={"Prefer": "wait=60"})
        assert (ran.status_code, ran.json()["status"]) == (200, "completed")
        codes = [(await client.post("/api/v2/jobs/hello/force-run")).status_code for _ in range(3)]
        assert (codes[0], codes[-1]) == (202, 429)
    async with running(sqlite_url) as client:
        again = await client.post("/api/v2/jobs", json=BODY, headers=key)
        assert again.headers["Idempotency-Replayed"] == "true"
        assert again.content == first.content
