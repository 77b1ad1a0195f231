"""Keeps this instance's clock on the database's time, so that all instances agree what time it is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from noonday.clock import SyncedClock
from noonday.engine.loop import Actor, Wish
from noonday.store import dialects
from noonday.store.database import Database

log = structlog.get_logger(__name__)

_EVERY = timedelta(seconds=10)
_SOON = timedelta(seconds=1)
_SAMPLES = 5
_TOO_LONG = 0.25  # seconds; the error of a sample is at most its round trip
_WORTH_SAYING = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Sample:
    now: datetime  # the database's
    at: float  # our monotonic clock, when the answer came
    took: float


class Timekeeper(Actor):
    """While the database is away, the clock goes on by its last measurement.

    The database read its clock at some moment between the question and the answer. It is taken for the latest
    of them: so this clock is behind by a round trip at the most, and nothing fires before its time.
    """

    name = "timekeeper"

    def __init__(self, *, db: Database, clock: SyncedClock) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._clock = clock

    async def run_once(self) -> Wish:
        best = min(await self._db.read(self._samples), key=lambda sample: sample.took)
        if best.took > _TOO_LONG and self._clock.synced:
            return _SOON  # what we have is better than that
        behind = self._clock.adjust(best.now, best.at, best.took)
        if abs(behind) > _WORTH_SAYING:
            log.warning(
                "this clock was not the database's and is set",
                action="clock",
                behind_seconds=round(behind.total_seconds(), 3),
            )
        return _EVERY

    def _samples(self, conn: Connection) -> list[Sample]:
        return [self._sample(conn) for _ in range(_SAMPLES)]

    def _sample(self, conn: Connection) -> Sample:
        asked = self._clock.monotonic()
        now = dialects.of(conn).now(conn, self._clock.now())
        at = self._clock.monotonic()
        return Sample(now, at, at - asked)
