"""Tells the others that this instance lives and how busy it is, and obeys when people want it to drain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial

from noonday.clock import Clock
from noonday.engine.loop import Actor, Wish
from noonday.store import instances
from noonday.store.database import Database
from noonday.store.instances import DRAINING, Instance
from noonday.store.notices import INSTANCES

_WATCHED = timedelta(seconds=0.5)  # between looks while somebody may wait for the end of the draining


def _deaf(draining: bool) -> None:
    """Of an instance that nobody can drain."""


class Heartbeat(Actor):
    """Woken when something is wanted of an instance; what changed is told at once, the rest now and then."""

    name = "heartbeat"
    gap = 0.05

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        describe: Callable[[], Instance],
        obey: Callable[[bool], None] = _deaf,  # shall it drain?
        every: timedelta = timedelta(seconds=10),
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(INSTANCES))
        self._db = db
        self._describe = describe
        self._obey = obey
        self._every = every
        self._told: Instance | None = None
        self._told_at = 0.0
        self._gone = False
        self._turn = asyncio.Lock()  # no beat comes after the last one

    async def begin(self) -> None:
        """The first beat of this process."""
        await self._tell(self._describe(), instances.enter)

    async def run_once(self) -> Wish:
        async with self._turn:
            return None if self._gone else await self._beat()

    async def _beat(self) -> timedelta:
        own = self._describe()
        self._obey(await self._db.read(partial(instances.wanted, instance_id=own.id)) == DRAINING)
        own = self._describe()
        # Only what is news is written: on SQLite each write wakes every other process.
        if self._is_news(own) or self._silence() >= self._every:
            await self._tell(own, instances.beat)
        rest = self._every - self._silence()
        return min(rest, _WATCHED) if own.state == DRAINING else rest

    async def stop(self) -> None:
        """The last beat: this instance is gone, and nobody needs to wonder."""
        async with self._turn:
            self._gone = True
            await self._db.write(partial(instances.leave, instance=self._describe()))

    async def _tell(self, own: Instance, how: Callable[..., None]) -> None:
        at = self.clock.monotonic()
        await self._db.write(partial(how, instance=own))
        self._told, self._told_at = own, at

    def _is_news(self, own: Instance) -> bool:
        """Busy slots and the time alone are not."""
        told = self._told
        return told is None or replace(told, heartbeat_at=own.heartbeat_at, busy=own.busy) != own

    def _silence(self) -> timedelta:
        return timedelta(seconds=self.clock.monotonic() - self._told_at)
