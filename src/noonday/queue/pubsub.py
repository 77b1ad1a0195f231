"""Redis Pub/Sub as the engine's ears for what other programs publish."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from datetime import timedelta
from typing import TypeVar

from noonday.domain.errors import RoadDown
from noonday.ports import Message
from noonday.queue.ear import Ear
from noonday.redis_link import RedisLink

T = TypeVar("T")


class RedisReceiver:
    """The Receiver of an instance; it has a connection only while there is something to follow."""

    def __init__(self, link: RedisLink) -> None:
        self._link = link
        self._ear: Ear | None = None

    async def follow(self, channels: Collection[str]) -> None:
        if not channels:
            return await self.close()
        if self._ear is None:
            self._ear = Ear(self._link)
        ear = self._ear
        return await self._listening(lambda: ear.follow(channels))

    async def take(self, limit: int, wait: timedelta) -> list[Message]:
        ear = self._ear
        if ear is None:
            raise RoadDown("nothing is followed")
        return await self._listening(lambda: ear.take(limit, wait.total_seconds()))

    async def close(self) -> None:
        ear, self._ear = self._ear, None
        if ear is not None:
            await ear.close()

    async def _listening(self, act: Callable[[], Awaitable[T]]) -> T:
        try:
            return await act()
        except RoadDown:
            await self.close()  # the next one begins afresh
            raise
