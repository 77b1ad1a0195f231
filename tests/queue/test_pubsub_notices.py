"""Notices over Redis: a commit here wakes an instance there that has no other way to hear of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from noonday.ids import new_id
from noonday.queue.notices import RedisNotices
from noonday.queue.pubsub import RedisReceiver
from noonday.redis_link import RedisLink
from noonday.store.database import Database
from noonday.store.listening import payload
from noonday.store.notices import JOBS, WORK, tell
from tests.factories import NOON
from tests.queue.roads import opened
from tests.servers import Server, start_redis


@pytest.fixture
def prefix() -> str:
    return f"test-{new_id(NOON)}"


@asynccontextmanager
async def hearing(db: Database, link: RedisLink, prefix: str) -> AsyncIterator[RedisNotices]:
    """As an instance does it, but with nobody who listens to the database."""
    notices = RedisNotices(link, prefix=prefix, origin=db.origin, wake=db.wake)
    db.relay = notices.tell
    ready = db.subscribe(JOBS)
    running = asyncio.create_task(notices.run())
    try:
        await woken(ready)  # it wakes everybody once it listens
        yield notices
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@asynccontextmanager
async def two_instances(url: str, redis_url: str, prefix: str) -> AsyncIterator[tuple[Database, Database]]:
    here, there = Database(url), Database(url)
    try:
        async with (
            opened(redis_url) as one,
            opened(redis_url) as other,
            hearing(here, one, prefix),
            hearing(there, other, prefix),
        ):
            yield here, there
    finally:
        await here.close()
        await there.close()


async def woken(event: asyncio.Event, seconds: float = 10) -> None:
    async with asyncio.timeout(seconds):
        await event.wait()
    event.clear()


def work(conn: Connection) -> None:
    tell(conn, WORK)


async def test_an_instance_wakes_on_the_commit_of_another(db_url: str, redis_url: str, prefix: str) -> None:
    async with two_instances(db_url, redis_url, prefix) as (here, there):
        wanted, unasked = there.subscribe(WORK), there.subscribe(JOBS)
        await here.write(work)
        await woken(wanted)
        assert not unasked.is_set()


async def test_it_does_not_wake_itself_and_not_for_what_was_rolled_back(
    sqlite_url: str, redis_url: str, prefix: str
) -> None:
    async with two_instances(sqlite_url, redis_url, prefix) as (here, there):
        own, others = here.subscribe(JOBS), there.subscribe(WORK)

        def fails(conn: Connection) -> None:
            tell(conn, WORK)
            raise ValueError("rolled back")

        with pytest.raises(ValueError, match="rolled back"):
            await here.write(fails)
        await there.write(lambda conn: tell(conn, JOBS))
        await woken(own)
        assert not others.is_set()
        own.clear()
        await here.write(lambda conn: tell(conn, JOBS))
        await woken(own)  # by its own commit, once
        last = here.subscribe(WORK)
        await there.write(work)
        await woken(last)  # whatever came back over Redis has come by now
        assert not own.is_set()


async def test_many_commits_are_few_messages(sqlite_url: str, redis_url: str, prefix: str) -> None:
    async with two_instances(sqlite_url, redis_url, prefix) as (here, there), opened(redis_url) as link:
        receiver = RedisReceiver(link)
        await receiver.follow([f"{prefix}:notices"])
        last = there.subscribe(JOBS)
        for _ in range(300):
            await here.write(work)
        await here.write(lambda conn: tell(conn, JOBS))
        await woken(last)
        heard = await receiver.take(1000, timedelta(seconds=1))
        await receiver.close()
        assert 1 <= len(heard) < 300


async def test_a_commit_neither_waits_nor_fails_without_redis_and_goes_on_when_it_is_back(
    sqlite_url: str, prefix: str
) -> None:
    server = start_redis(own=True)
    try:
        async with two_instances(sqlite_url, server.url, prefix) as (here, there):
            server.halt()
            async with asyncio.timeout(5):
                for _ in range(20):
                    await here.write(work)
            server.start()
            await woken(there.subscribe(WORK))  # it listens again: whatever was said meanwhile
            heard = there.subscribe(JOBS)
            async with asyncio.timeout(20):
                while not heard.is_set():  # the speaker may still be in its pause
                    await here.write(lambda conn: tell(conn, JOBS))
                    await asyncio.sleep(0.05)
    finally:
        server.stop()


async def test_garbage_on_the_channel_only_wakes(sqlite_url: str, redis_url: str, prefix: str) -> None:
    async with two_instances(sqlite_url, redis_url, prefix) as (_, there), opened(redis_url) as link:
        for text in ("", "  ", "x", "a b c", "\x00\xff", payload("somebody", frozenset({"unknown"}))):
            heard = there.subscribe(WORK)
            await link.call("PUBLISH", f"{prefix}:notices", text)
            await woken(heard)


def test_it_may_be_told_after_its_loop_is_closed(redis_server: Server) -> None:
    async def make() -> RedisNotices:
        async with opened(redis_server.url) as link:
            return RedisNotices(link, prefix="x", origin="y", wake=lambda topics: None)

    notices = asyncio.run(make())
    notices.tell(frozenset({WORK}))
