"""How full each hour was and will be: counted from the history, and computed from the schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.remembering import Remembered
from noonday.domain.counting import count_by_hour
from noonday.domain.errors import invalid
from noonday.domain.job import JobId
from noonday.domain.load import first_minute
from noonday.domain.upcoming import Timed
from noonday.store import forecasting, loads
from noonday.store.database import Database
from noonday.store.loads import Hour
from noonday.store.tallies import SLOT

__all__ = ["WIDEST", "Coming", "Hour", "Loads", "Past"]

WIDEST: Final = timedelta(days=42)
_FARTHEST: Final = timedelta(days=366)
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Runs by the hour of UTC in which they were due; hours without any are left out."""

    since: datetime
    until: datetime
    hours: Mapping[datetime, Hour]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """Runs to come by the hour of UTC, parts of one where a fast job was not counted out."""

    until: datetime
    starts: Mapping[datetime, float]
    busy: Mapping[datetime, timedelta]  # as long as the newest runs of the same jobs took
    jobs: int
    rough: bool  # some later times are guessed from a pace
    partial: bool  # there are more jobs than one look takes


class Loads:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._ahead: Remembered[Coming] = Remembered(db, clock)

    async def past(self, since: datetime, until: datetime, service: str | None = None) -> Past:
        """What was due from `since` until before `until`, in whole slots of ten minutes up to now."""
        if until < since:
            raise invalid("to", until.isoformat(), f"lies before {since.isoformat()}")
        if until - since > WIDEST:
            raise invalid("from", since.isoformat(), f"is more than {WIDEST.days} days before the end")
        edge = min(first_minute(until + SLOT - _TICK, SLOT), max(until, self._clock.now()))
        first = first_minute(since, SLOT)
        hours = await self._db.read(lambda conn: loads.hours(conn, first, edge, service))
        return Past(since=since, until=until, hours=hours)

    async def coming(self, until: datetime, service: str | None = None) -> Coming:
        """What will start from now until then; remembered for a minute, or until a job changes."""
        now = self._clock.now()
        if until > now + _FARTHEST:
            raise invalid("to", until.isoformat(), f"is more than {_FARTHEST.days} days ahead")
        return await self._ahead.get((service, until), lambda: self._look_ahead(until, service))

    async def _look_ahead(self, until: datetime, service: str | None) -> Coming:
        now = self._clock.now()

        def read(conn: Connection) -> tuple[list[Timed], bool, dict[JobId, timedelta]]:
            return *forecasting.timed_until(conn, until, service), loads.usual_spans(conn)

        jobs, partial, usual = await self._db.read(read)
        seen = await asyncio.to_thread(count_by_hour, jobs, now, until, usual)
        return Coming(
            until=until,
            starts=seen.starts,
            busy=seen.busy,
            jobs=len(jobs),
            rough=seen.rough,
            partial=partial,
        )
