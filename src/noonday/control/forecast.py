"""What will run: of one job, and of all of them within a span of time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from heapq import merge
from itertools import islice, takewhile

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.remembering import Remembered
from noonday.domain.errors import invalid
from noonday.domain.job import Job, JobId
from noonday.domain.upcoming import Firing, fires, fires_until
from noonday.store import forecasting, jobs, statistics
from noonday.store.database import Database

__all__ = ["Coming", "Expected", "Forecast", "Forecasts"]

FARTHEST = timedelta(days=366)
WIDEST = timedelta(days=31)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """The next times of one job."""

    job: Job
    times: tuple[datetime, ...]
    more: bool  # there are further times that were asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """A run to come. Jitter is not in its time, and its end is known only if runs were completed before."""

    job: Job
    at: datetime
    took: timedelta | None = None  # completed runs of it so far, on average

    @property
    def ends_at(self) -> datetime | None:
        return None if self.took is None else self.at + self.took


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    since: datetime
    until: datetime
    runs: tuple[Expected, ...]  # in order
    more: bool


class Forecasts:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._known: Remembered[Forecast] = Remembered(db, clock)

    async def of_job(self, id_or_name: str, count: int = 10, until: datetime | None = None) -> Coming:
        """The next `count` times, or those of them that come `until` then; none of a job that rests."""
        job = await self._db.read(lambda conn: jobs.resolve(conn, id_or_name))
        now = self._clock.now()

        def walk() -> list[datetime]:
            times = fires(job, now)
            wanted = times if until is None else takewhile(lambda at: at <= until, times)
            return list(islice(wanted, count + 1))

        found = await asyncio.to_thread(walk)
        return Coming(job=job, times=tuple(found[:count]), more=len(found) > count)

    async def overall(
        self,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        limit: int = 200,
        service: str | None = None,
    ) -> Forecast:
        """Everything that fires in [since, until], at most the first `limit`; by default within a day."""
        key = (since, until, limit, service)
        since, until = self._span(since, until)
        if key[:2] == (None, None):
            return await self._look(since, until, limit, service)
        found = await self._known.get(key, lambda: self._look(since, until, limit, service))
        return replace(found, since=since, runs=tuple(run for run in found.runs if run.at >= since))

    async def _look(self, since: datetime, until: datetime, limit: int, service: str | None) -> Forecast:
        now = self._clock.now()
        found, left_out = await self._db.read(lambda conn: forecasting.timed_until(conn, until, service))
        seen = await asyncio.to_thread(lambda: list(islice(_in_order(found, now, since, until), limit + 1)))

        def read(conn: Connection) -> tuple[dict[JobId, Job], dict[JobId, timedelta]]:
            ids = {job_id for _, job_id in seen}
            return forecasting.whole(conn, ids), statistics.usual_durations(conn, ids)

        known, usual = await self._db.read(read)
        runs = (
            Expected(job=known[job_id], at=at, took=usual.get(job_id))
            for at, job_id in seen[:limit]
            if job_id in known
        )
        return Forecast(since=since, until=until, runs=tuple(runs), more=left_out or len(seen) > limit)

    def _span(self, since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
        """What has passed is history, and none of this."""
        now = self._clock.now()
        since = now if since is None else max(since, now)
        if since > now + FARTHEST:
            raise invalid("from", since.isoformat(), f"is more than {FARTHEST.days} days ahead")
        until = since + timedelta(days=1) if until is None else until
        if until < since:
            raise invalid("to", until.isoformat(), f"lies before {since.isoformat()}")
        if until - since > WIDEST:
            raise invalid("to", until.isoformat(), f"is more than {WIDEST.days} days after the start")
        return since, until


def _in_order(
    found: Iterable[Firing], now: datetime, since: datetime, until: datetime
) -> Iterator[tuple[datetime, JobId]]:
    return merge(*(_times(job, now, since, until) for job in found))


def _times(job: Firing, now: datetime, since: datetime, until: datetime) -> Iterator[tuple[datetime, JobId]]:
    return ((at, job.id) for at in fires_until(job, now, until, since))
