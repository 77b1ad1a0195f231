"""Tells the road what became of its deliveries: done with, or still worked on. Nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from noonday.clock import Clock
from noonday.domain.errors import RoadDown
from noonday.engine.loop import Actor, Wish
from noonday.engine.streams import Streams
from noonday.ports import Delivery

_BATCH: Final = 1000


class Acker(Actor):
    """All that gathered goes together. What the road does not hear is harmless: a message that nobody
    acknowledges is looked at again one day, and its row says that there is nothing to do."""

    name = "acker"
    gap = 0.05  # the first goes at once, those close behind share a round trip: nobody waits for them

    def __init__(self, *, clock: Clock, streams: Streams) -> None:
        super().__init__(clock=clock)
        self._streams = streams
        self._done: list[Delivery] = []
        self._kept: list[Delivery] = []
        self._idle = asyncio.Event()
        self._idle.set()

    def done(self, *deliveries: Delivery | None) -> None:
        """To be called after the commit that made it so."""
        self._done += [one for one in deliveries if one is not None]
        self._stir()

    def keep(self, deliveries: Iterable[Delivery]) -> None:
        """Their leases were renewed: nobody shall take them for abandoned."""
        self._kept += deliveries
        self._stir()

    async def drained(self) -> None:
        """Wait until the road was told everything, or could not be."""
        await self._idle.wait()

    async def run_once(self) -> Wish:
        while self._done or self._kept:
            done, self._done = self._done[:_BATCH], self._done[_BATCH:]
            kept, self._kept = self._kept[:_BATCH], self._kept[_BATCH:]
            try:
                await self._tell(done, kept)
            except RoadDown:
                self._done.clear()
                self._kept.clear()
        self._idle.set()
        return None

    async def _tell(self, done: list[Delivery], kept: list[Delivery]) -> None:
        if done:
            await self._streams.ask(lambda queue: queue.ack(done))
        if kept:
            await self._streams.ask(lambda queue: queue.keep(kept))

    def _stir(self) -> None:
        if self._done or self._kept:
            self._idle.clear()
            self.wake.set()
