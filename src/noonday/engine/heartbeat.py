"""Tells the others that this instance lives and how busy it is."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from noonday.clock import Clock
from noonday.engine.loop import Actor, Wish
from noonday.store import instances
from noonday.store.database import Database
from noonday.store.instances import Instance


class Heartbeat(Actor):
    name = "heartbeat"

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        describe: Callable[[], Instance],
        every: timedelta = timedelta(seconds=10),
    ) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._describe = describe
        self._every = every
        self._gone = False

    async def run_once(self) -> Wish:
        if self._gone:
            return None
        await self._db.write(partial(instances.beat, instance=self._describe()))
        return self._every

    async def stop(self) -> None:
        """The last beat: this instance is gone, and nobody needs to wonder."""
        self._gone = True
        await self._db.write(partial(instances.remove, instance_id=self._describe().id))
