"""How full each hour was and will be: counted from the history, and computed from the schedules."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain import heat
from noonday.domain.errors import invalid
from noonday.domain.heat import hour_of
from noonday.domain.job import Job, JobId
from noonday.store import forecasting, loads
from noonday.store.database import Database
from noonday.store.loads import Hour

__all__ = ["WIDEST", "Coming", "Hour", "Loads", "Past"]

WIDEST: Final = timedelta(days=42)
_FARTHEST: Final = timedelta(days=366)
_FRESH: Final = timedelta(minutes=5)  # hours that are over are counted anew so often
_SETTLED: Final = timedelta(hours=2)  # what was due before that has ended, mostly
_KEPT: Final = 64


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


@dataclass(frozen=True, slots=True)
class _Remembered:
    at: datetime
    found: Mapping[datetime, Hour]


class Loads:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._known: dict[tuple[str | None, datetime, datetime], _Remembered] = {}
        self._ahead: dict[tuple[str | None, datetime], tuple[datetime, Coming]] = {}

    async def past(self, since: datetime, until: datetime, service: str | None = None) -> Past:
        """What was due from `since` until before `until`; hours that are over are remembered for a while."""
        if until < since:
            raise invalid("to", until.isoformat(), f"lies before {since.isoformat()}")
        if until - since > WIDEST:
            raise invalid("from", since.isoformat(), f"is more than {WIDEST.days} days before the end")
        settled = min(max(hour_of(self._clock.now()) - _SETTLED, since), until)
        over = await self._over(service, since, settled)
        newest = await self._db.read(lambda conn: loads.hours(conn, settled, until, service))
        return Past(since=since, until=until, hours={**over, **newest})

    async def coming(self, until: datetime, service: str | None = None) -> Coming:
        """What will start from now until then; remembered for a minute, for one who clicks about."""
        now = self._clock.now()
        if until > now + _FARTHEST:
            raise invalid("to", until.isoformat(), f"is more than {_FARTHEST.days} days ahead")
        at, found = self._ahead.get((service, until), (None, None))
        if at is not None and found is not None and timedelta() <= now - at < timedelta(minutes=1):
            return found

        def read(conn: Connection) -> tuple[list[Job], bool, dict[JobId, timedelta]]:
            return *forecasting.firing_until(conn, until, service), loads.usual_spans(conn)

        jobs, partial, usual = await self._db.read(read)
        seen = await asyncio.to_thread(heat.coming, jobs, now, until, usual)
        found = Coming(
            until=until,
            starts=seen.starts,
            busy=seen.busy,
            jobs=len(jobs),
            rough=seen.rough,
            partial=partial,
        )
        if len(self._ahead) >= _KEPT:
            self._ahead.clear()
        self._ahead[service, until] = (now, found)
        return found

    async def _over(self, service: str | None, since: datetime, until: datetime) -> Mapping[datetime, Hour]:
        now, key = self._clock.now(), (service, since, until)
        known = self._known.get(key)
        if known is None or not timedelta() <= now - known.at < _FRESH:
            found = await self._db.read(lambda conn: loads.hours(conn, since, until, service))
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = known = _Remembered(now, found)
        return known.found
