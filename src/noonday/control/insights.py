"""One job as people look at it: why it runs or not, how it fares, and which jobs are around it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.statistics import JobStatistics, Statistics
from noonday.domain.calendar import Outside
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job, JobId
from noonday.domain.upcoming import fires
from noonday.domain.why import Why, drift, why
from noonday.store import jobs, neighbours, strips
from noonday.store.database import Database
from noonday.store.lateness import lately_late
from noonday.store.neighbours import Edge, Neighbour
from noonday.store.open_runs import open_runs
from noonday.store.overview import LATE_AFTER
from noonday.store.strips import Bar

__all__ = ["Edge", "Insight", "Insights", "Neighbour", "Neighbourhood", "Standing"]

_DAYS: Final = 30
_SLOWER: Final = 1.5  # times as long as before: worth a word
_ENOUGH: Final = 5  # runs, before their figures say what is usual
_LONGER: Final = 2  # times as long as half of the runs
_FIRES: Final = 10  # among which the shortest time between two is looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How it stands at this moment."""

    job: Job
    open_runs: tuple[Execution, ...]
    next_at: datetime | None
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Insight:
    """How it fared on the last days; what is None is nothing to worry about."""

    statistics: JobStatistics
    strip: tuple[Bar, ...]
    overrun: timedelta | None  # how long a run goes on that takes far longer than is usual
    slower: float | None  # how many times as long as before its runs take lately
    every: timedelta | None  # the time between two of its runs, if they take longer than that
    late: timedelta | None  # by how much half of its last runs began after their time, or more


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """`known` lacks the jobs that the reader may not see, and those that are gone."""

    job: Job
    edges: tuple[Edge, ...]
    known: Mapping[JobId, Neighbour]
    more: bool


class Insights:
    def __init__(self, db: Database, clock: Clock, statistics: Statistics) -> None:
        self._db = db
        self._clock = clock
        self._statistics = statistics

    async def standing(self, id_or_name: str) -> Standing:
        def look(conn: Connection) -> tuple[Job, list[Execution]]:
            job = jobs.resolve(conn, id_or_name)
            return job, open_runs(conn, job.id)

        job, found = await self._db.read(look)
        now = self._clock.now()
        next_at = await asyncio.to_thread(lambda: next(fires(job, now), None))
        reason = why(job, found, next_at, now)
        return Standing(job=job, open_runs=tuple(found), next_at=next_at, why=reason)

    async def look(self, standing: Standing) -> Insight:
        job = standing.job
        figures = await self._statistics.of_job(job.id, _DAYS)

        def read(conn: Connection) -> tuple[tuple[Bar, ...], list[timedelta]]:
            return strips.strips(conn, [job.id]).get(job.id, ()), lately_late(conn, job.id)

        bars, lateness = await self._db.read(read)
        times = drift([day.average for day in figures.by_day])
        return Insight(
            statistics=figures,
            strip=bars,
            overrun=self._overrun(standing, figures),
            slower=times if times is not None and times >= _SLOWER else None,
            every=await asyncio.to_thread(self._too_often, job, figures),
            late=_late(job, lateness),
        )

    async def neighbourhood(self, id_or_name: str, service: str | None = None) -> Neighbourhood:
        def look(conn: Connection) -> Neighbourhood:
            job = jobs.resolve(conn, id_or_name)
            edges, more = neighbours.around(conn, job.id)
            ids = {job.id, *(edge.parent for edge in edges), *(edge.child for edge in edges)}
            known = neighbours.known(conn, ids, service)
            return Neighbourhood(job=job, edges=tuple(edges), known=known, more=more)

        return await self._db.read(look)

    def _overrun(self, standing: Standing, figures: JobStatistics) -> timedelta | None:
        usual = figures.durations
        if usual is None or figures.counts.completed < _ENOUGH:
            return None
        now = self._clock.now()
        started = [
            run.started_at
            for run in standing.open_runs
            if run.state is ExecutionState.RUNNING and run.started_at is not None
        ]
        longest = max((now - at for at in started), default=timedelta())
        return longest if longest > max(usual.p95, _LONGER * usual.p50) else None

    def _too_often(self, job: Job, figures: JobStatistics) -> timedelta | None:
        if figures.durations is None or figures.counts.completed < _ENOUGH:
            return None
        coming = islice(fires(job, self._clock.now()), _FIRES)
        shortest = min((later - at for at, later in pairwise(coming)), default=None)
        return shortest if shortest is not None and figures.durations.p95 > shortest else None


def _late(job: Job, lateness: list[timedelta]) -> timedelta | None:
    """A run that is moved to the next opening is late on purpose, and so is one that is spread."""
    available = job.timing.availability
    if len(lateness) < _ENOUGH or (available.limited and available.outside is Outside.MOVE):
        return None
    half = sorted(lateness)[(len(lateness) - 1) // 2]
    return half if half > LATE_AFTER + job.timing.jitter else None
