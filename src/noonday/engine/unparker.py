"""On every worker: lets executions go on that wait for a Python task which is known here."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from noonday.clock import Clock
from noonday.engine import looks
from noonday.engine.loop import Actor, Wish
from noonday.store import executions
from noonday.store.database import Database


class Unparker(Actor):
    """Only whoever would run a task can say that it is known: the leader may be no worker at all."""

    name = "unparker"
    head_start = 1.0

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        knows: Callable[[str], bool],
        every: timedelta = timedelta(minutes=1),
    ) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._knows = knows
        self._every = every

    async def run_once(self) -> Wish:
        parked = await self._db.read(looks.parked_tasks)
        known = [task for task in parked if self._knows(task)]  # may import; no transaction waits for that
        if known:
            await self._db.write(partial(executions.unpark, tasks=known))
        return self._every
