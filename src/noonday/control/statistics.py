"""How jobs fare, of one and of all: rates, durations and days; in calendar days of UTC, today included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.errors import invalid
from noonday.domain.execution import Execution
from noonday.domain.job import Job, JobState
from noonday.domain.upcoming import fires
from noonday.store import jobs, meta, statistics
from noonday.store.database import Database
from noonday.store.statistics import Counts, Day, Durations, Scope, Tally

__all__ = [
    "LONGEST",
    "Counts",
    "Day",
    "Durations",
    "JobStatistics",
    "OverallStatistics",
    "Period",
    "Statistics",
]

LONGEST = 3660  # days


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What was due from `since` until now; without `days` and `since`, all that is kept."""

    until: datetime
    days: int | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStatistics:
    """`last` is the newest run whenever it was; `by_day` has each day of the period, if it has an end."""

    job: Job
    period: Period
    counts: Counts
    durations: Durations | None  # None if no run was completed
    by_day: tuple[Day, ...]
    partial: bool  # not all executions of the period are counted, only the newest
    last: Execution | None
    next_run_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallStatistics:
    """As JobStatistics, of all jobs, or of those of one service."""

    jobs: Mapping[JobState, int]
    period: Period
    counts: Counts
    durations: Durations | None
    by_day: tuple[Day, ...]
    partial: bool
    last: Execution | None
    next_run_at: datetime | None


class Statistics:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def of_job(self, id_or_name: str, days: int | None = None) -> JobStatistics:
        """Of the executions that are still kept; with `days`, of those due on the last so many days."""
        period = self._period(days)

        def look(conn: Connection) -> JobStatistics:
            job = jobs.resolve(conn, id_or_name)
            scope = Scope(job_id=job.id, since=period.since)
            found = statistics.tally(conn, scope)
            return JobStatistics(
                job=job,
                period=period,
                counts=found.counts,
                durations=found.durations,
                by_day=_each_day(found, period),
                partial=found.partial,
                last=statistics.last_run(conn, Scope(job_id=job.id)),
                next_run_at=next(fires(job, period.until), None),
            )

        return await self._db.read(look)

    async def overall(self, days: int | None = None, service: str | None = None) -> OverallStatistics:
        """Of all jobs, or of those of one service."""
        period = self._period(days)

        def look(conn: Connection) -> OverallStatistics:
            found = statistics.tally(conn, Scope(service=service, since=period.since))
            return OverallStatistics(
                jobs=statistics.job_states(conn, service),
                period=period,
                counts=found.counts,
                durations=found.durations,
                by_day=_each_day(found, period),
                partial=found.partial,
                last=statistics.last_run(conn, Scope(service=service)),
                next_run_at=statistics.next_run_at(conn, service),
            )

        return await self._db.read(look)

    async def stale_locks_cleared(self) -> int:
        """Locks of dead runs that were forgotten so far, by any instance."""
        return await self._db.read(lambda conn: meta.count(conn, meta.STALE_LOCKS))

    def _period(self, days: int | None) -> Period:
        now = self._clock.now()
        if days is None:
            return Period(until=now)
        if not 1 <= days <= LONGEST:
            raise invalid("days", days, f"is not between 1 and {LONGEST}")
        first = now.date() - timedelta(days=days - 1)
        return Period(until=now, days=days, since=datetime.combine(first, time(), now.tzinfo))


def _each_day(found: Tally, period: Period) -> tuple[Day, ...]:
    """The days of the period without a gap, so that they can be drawn side by side."""
    if period.since is None:
        return found.days
    known: dict[date, Day] = {one.day: one for one in found.days}
    last = max([period.until.date(), *known])
    count = (last - period.since.date()).days + 1
    every = (period.since.date() + timedelta(days=n) for n in range(count))
    return tuple(known.get(day) or Day(day=day, counts=Counts()) for day in every)
