"""The consumer groups: made before their first use, and anew from the beginning when Redis lost them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import structlog

from noonday.queue.messages import GROUP, Keys
from noonday.redis_link import RedisLink, Refused

log = structlog.get_logger(__name__)

_LOST = {"NOGROUP", "UNBLOCKED"}  # the second: the stream vanished under a blocked read
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 3.0

T = TypeVar("T")


class Groups:
    """`forgotten` counts how often groups were gone that had been there: the road lost its memory."""

    def __init__(self, link: RedisLink, keys: Keys) -> None:
        self._link = link
        self._keys = keys
        self.forgotten = 0
        self._known = False
        self._strain = 0  # two up for each loss, one down for each success
        self._lock = asyncio.Lock()

    async def prepare(self) -> None:
        made = await self._make()
        if made and self._known:
            self._note_loss()
        self._known = True

    def lost(self) -> None:
        """Noticed by the way: they are made before the next use."""
        self._note_loss()
        self._known = False

    async def on(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do it with the groups there. If they are lost, make them and try once more; then it is an error."""
        if not self._known:
            await self.prepare()
        before = self.forgotten
        try:
            done = await work()
        except Refused as exc:
            if exc.code not in _LOST:
                raise
            await self._remake(before)
            return await work()
        self._strain = max(0, self._strain - 1)
        return done

    async def _remake(self, before: int) -> None:
        async with self._lock:
            if self._known and self.forgotten != before:
                return  # another task saw it first
            self._known = False
            self._note_loss()
            await asyncio.sleep(self._pause())
            self._strain += 2
            await self._make()
            self._known = True

    def _note_loss(self) -> None:
        self.forgotten += 1
        log.warning("the streams' groups were gone and are made anew", action="streams", group=GROUP)

    def _pause(self) -> float:
        """None at first. A server that loses them again and again is not asked in a hot loop."""
        if not self._strain:
            return 0
        return min(_FIRST_PAUSE * 2.0 ** min(self._strain - 1, 10), _LONGEST_PAUSE)

    async def _make(self) -> bool:
        """From the first message on, so that none is passed over. Says whether any was missing."""
        made = False
        for key in self._keys.values():
            try:
                await self._link.call("XGROUP", "CREATE", key, GROUP, "0", "MKSTREAM")
                made = True
            except Refused as exc:
                if exc.code != "BUSYGROUP":
                    raise
        return made
