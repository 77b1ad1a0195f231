"""A road for each test on a shared server: its own prefix, any number of consumers, swept at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from noonday.domain.execution import ExecutionId
from noonday.domain.job import Lane
from noonday.ids import new_id
from noonday.ports import Delivery, Parcel
from noonday.queue.redis_streams import RedisStreams
from noonday.redis_link import RedisLink

NOW = timedelta(0)
MOMENT = timedelta(milliseconds=100)
SECOND = timedelta(seconds=1)

T = TypeVar("T")


def an_id() -> ExecutionId:
    return ExecutionId(new_id(datetime.now(UTC)))


def parcels(count: int, lane: Lane = Lane.NORMAL) -> list[Parcel]:
    return [Parcel(lane, an_id()) for _ in range(count)]


def ids(things: Iterable[Parcel | Delivery]) -> list[str]:
    return [thing.execution_id for thing in things]


class Road:
    """Several instances on one road, and a look behind it."""

    def __init__(self, link: RedisLink) -> None:
        self.link = link
        self.prefix = f"test-{an_id()}"
        self.keys = {lane: f"{self.prefix}:jobs:{lane.name.lower()}" for lane in Lane}

    def instance(self, name: str = "one", link: RedisLink | None = None) -> RedisStreams:
        return RedisStreams(link or self.link, prefix=self.prefix, consumer=name)

    async def pending(self, lane: Lane = Lane.NORMAL) -> dict[str, str]:
        rows = await self.link.call("XPENDING", self.keys[lane], "scheduler", "-", "+", 10_000)
        return {row[0]: row[1] for row in rows}

    async def length(self, lane: Lane = Lane.NORMAL) -> int:
        count: int = await self.link.call("XLEN", self.keys[lane])
        return count

    async def consumers(self, lane: Lane = Lane.NORMAL) -> set[str]:
        rows = await self.link.call("XINFO", "CONSUMERS", self.keys[lane], "scheduler")
        return {row[1] for row in rows}

    async def add_raw(self, *fields: Any, lane: Lane = Lane.NORMAL) -> str:
        receipt: str = await self.link.call("XADD", self.keys[lane], "*", *fields)
        return receipt

    async def forget(self) -> None:
        await self.link.call("DEL", *self.keys.values())


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[RedisLink]:
    link = RedisLink(url)
    try:
        yield link
    finally:
        await link.close()


async def until(found: Callable[[], Awaitable[T]], seconds: float = 10) -> T:
    """Ask until the answer is true."""
    async with asyncio.timeout(seconds):
        while not (answer := await found()):
            await asyncio.sleep(0.01)
    return answer
