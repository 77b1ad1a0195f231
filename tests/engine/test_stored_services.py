"""Jobs call services where the database says they live; a change made by another process is seen at once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import ClientSession, web

from noonday.clock import SystemClock
from noonday.control.services import ServiceUrls
from noonday.instance import Instance
from noonday.settings import load
from noonday.store.database import Database


@asynccontextmanager
async def service(name: str) -> AsyncIterator[str]:
    """Says its name in each JobResult."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response({"success": True, "itemsProcessed": 1, "metadata": {"name": name}})

    app = web.Application()
    app.router.add_post("/jobs/hello", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def running(url: str) -> AsyncIterator[str]:
    instance, stop = Instance(load(database_url=url, port=0)), asyncio.Event()
    life = asyncio.create_task(instance.run(stop))
    ready = asyncio.create_task(instance.ready.wait())
    async with asyncio.timeout(40):
        await asyncio.wait([life, ready], return_when=asyncio.FIRST_COMPLETED)
    ready.cancel()
    try:
        yield instance.url
    finally:
        stop.set()
        async with asyncio.timeout(40):
            await life


async def called(http: ClientSession, url: str) -> object:
    """Which service answered; None if the call was not made."""
    path = f"{url}/api/jobs/hello/trigger"
    async with http.post(path, headers={"Prefer": "wait=20"}, json={}) as answer:
        assert answer.status == 200, await answer.text()
        found = await answer.json()
        return found["result"]["metadata"].get("name")


async def test_a_stored_service_is_called_where_it_lives_now(db_url: str) -> None:
    body = {"name": "hello", "cronExpression": "0 0 1 1 *", "service": "greeting-service"}
    body |= {"endpoint": "/jobs/hello"}
    other = Database(db_url)  # as another process has it
    urls = ServiceUrls(other, SystemClock())
    try:
        async with (
            service("one") as one,
            service("two") as two,
            running(db_url) as url,
            ClientSession() as http,
        ):
            sent = json.dumps(body | {"maxRetries": 0})
            async with http.post(f"{url}/api/jobs/register", data=sent) as answer:
                assert answer.status == 201, await answer.text()
            assert await called(http, url) is None
            for name, base in (("one", one), ("two", two)):
                await urls.put("greeting", base)
                async with asyncio.timeout(5):
                    while await called(http, url) != name:
                        await asyncio.sleep(0.02)
            await urls.remove("greeting")
            async with asyncio.timeout(5):
                while await called(http, url) is not None:
                    await asyncio.sleep(0.02)
    finally:
        await other.close()
