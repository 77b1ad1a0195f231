"""Notices over Redis Pub/Sub: what one instance commits wakes the others, also where LISTEN cannot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from noonday.domain.errors import RoadDown
from noonday.queue.ear import Ear
from noonday.redis_link import RedisLink
from noonday.store.listening import ALL, payload, topics_of

log = structlog.get_logger(__name__)

Wake = Callable[[frozenset[str]], None]

_GAP = 0.005  # seconds: what is told close together is published together
_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 3.0
_WAIT = 1.0
_MOST = 1_000


class RedisNotices:
    """`tell` may be called from any thread; it never waits, and while Redis is away nothing is said."""

    def __init__(self, link: RedisLink, *, prefix: str, origin: str, wake: Wake) -> None:
        self._link = link
        self._channel = f"{prefix}:notices"
        self._origin = origin  # marks our own
        self._wake = wake
        self._home = asyncio.get_running_loop()
        self._topics: set[str] = set()
        self._told = asyncio.Event()

    def tell(self, topics: frozenset[str]) -> None:
        with suppress(RuntimeError):  # its loop is closed: nobody speaks any more
            self._home.call_soon_threadsafe(self._gather, topics)

    async def run(self) -> None:
        """Speaks and hears for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._for_ever(self._speak, "speak"), name="notices.speak")
            group.create_task(self._for_ever(self._hear, "hear"), name="notices.hear")

    def _gather(self, topics: frozenset[str]) -> None:
        self._topics |= topics
        self._told.set()

    async def _for_ever(self, act: Callable[[], Awaitable[None]], what: str) -> None:
        pause = _FIRST_PAUSE
        while True:
            began = self._home.time()
            try:
                await act()
            except RoadDown as exc:
                if self._home.time() - began > _LONGEST_PAUSE:
                    pause = _FIRST_PAUSE  # it had gone well for a while
                if pause == _FIRST_PAUSE:
                    log.warning("notices do not go over Redis now", action=f"notices.{what}", error=str(exc))
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _speak(self) -> None:
        while True:
            await self._told.wait()
            self._told.clear()
            topics, self._topics = frozenset(self._topics), set()
            await self._link.call("PUBLISH", self._channel, payload(self._origin, topics))
            await asyncio.sleep(_GAP)

    async def _hear(self) -> None:
        ear = Ear(self._link)
        try:
            await ear.follow([self._channel])
            self._wake(ALL)  # whatever was said while nobody listened
            while True:
                messages = await ear.take(_MOST, _WAIT)
                heard = [topics_of(message.data, self._origin) for message in messages]
                if topics := frozenset[str]().union(*heard):
                    self._wake(topics)
        finally:
            await ear.close()
