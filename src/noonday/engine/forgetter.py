"""Once a minute: forgets what the front door keeps for a while: answers, deliveries, events, sessions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.engine.loop import Actor, Wish
from noonday.store import deliveries, events, replays, sessions
from noonday.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetterConfig:
    keep_events: int = 10_000
    keep_deliveries: timedelta = timedelta(days=7)  # a signature is good for minutes; the rest is for people
    every: timedelta = timedelta(minutes=1)
    batch: int = 1000


class Forgetter(Actor):
    name = "forgetter"
    head_start = 2.0

    def __init__(self, *, db: Database, clock: Clock, config: ForgetterConfig) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._config = config

    async def run_once(self) -> Wish:
        for forget in (self._answers, self._deliveries, self._events, self._sessions):
            await self._in_batches(forget)
        return self._config.every

    async def _in_batches(self, forget: Callable[[Connection], int]) -> None:
        """Small transactions, so that nobody waits long for the one writer."""
        while await self._db.write(forget) >= self._config.batch:
            pass

    def _answers(self, conn: Connection) -> int:
        return replays.prune(conn, self.clock.now(), self._config.batch)

    def _deliveries(self, conn: Connection) -> int:
        before = self.clock.now() - self._config.keep_deliveries
        return deliveries.prune(conn, before, self._config.batch)

    def _events(self, conn: Connection) -> int:
        return events.prune(conn, self._config.keep_events, self._config.batch)

    def _sessions(self, conn: Connection) -> int:
        return sessions.prune(conn, self.clock.now(), self._config.batch)
