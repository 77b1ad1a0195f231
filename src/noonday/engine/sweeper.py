"""Once a minute: puts right what no event will: stale locks, waiters whose cause is gone, dead instances."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.engine.counters import Counters
from noonday.engine.loop import Actor, Wish
from noonday.store import executions, instances, jobs
from noonday.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class SweeperConfig:
    every: timedelta = timedelta(minutes=1)
    stale_after: timedelta = timedelta(minutes=5)  # a lock without a living lease
    forget_after: timedelta = timedelta(hours=1)  # an instance that died without a word


class Sweeper(Actor):
    name = "sweeper"
    head_start = 1.0

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        counters: Counters,
        config: SweeperConfig,
    ) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._counters = counters
        self._config = config

    async def run_once(self) -> Wish:
        self._counters.stale_locks_cleared += await self._db.write(self._sweep)
        return self._config.every

    def _sweep(self, conn: Connection) -> int:
        now = self.clock.now()
        executions.rearm_waiting(conn, now)
        instances.forget(conn, now - self._config.forget_after)
        return jobs.clear_stale_locks(conn, now, self._config.stale_after)
