"""How executions went: counts, durations and days, of one job, of a service's jobs or of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Float,
    Row,
    Select,
    Subquery,
    Text,
    case,
    func,
    literal,
    select,
)
from sqlalchemy import cast as cast_to

from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import JobId, JobState
from noonday.ids import first_id
from noonday.store import dialects
from noonday.store.execution_rows import COLUMNS, read_execution
from noonday.store.owners import owned_by
from noonday.store.tables import ARMED, executions, jobs

NEWEST: Final = 100_000  # executions that one look counts, at most
MEASURED: Final = 20_000  # completed runs that are sorted by how long they took, at most
_EARLY: Final = timedelta(hours=1)  # more than anything is planned ahead of its time
_SHARES: Final = (0.5, 0.95, 0.99, 1.0)  # of Durations


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Of the newest completed runs, at most MEASURED, each by its newest attempt."""

    average: timedelta
    p50: timedelta
    p95: timedelta
    p99: timedelta
    max: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    skipped: int = 0  # due instants, of which one row may stand for many
    running: int = 0
    waiting: int = 0

    @property
    def total(self) -> int:
        """Runs: what ended and what is going on. What was skipped or still waits is none."""
        return self.completed + self.failed + self.cancelled + self.running

    @property
    def success_rate(self) -> float | None:
        """0..1 of what came to an end by itself; None if nothing did."""
        ended = self.completed + self.failed
        return self.completed / ended if ended else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What was due on one day in UTC."""

    day: date
    counts: Counts
    average: timedelta | None = None  # of a completed run


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    counts: Counts
    durations: Durations | None
    days: tuple[Day, ...]  # those on which something was due, in order
    partial: bool  # there were more than the NEWEST, which alone are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which executions: of one job, of a service's jobs, or of all; and only those due since an instant."""

    job_id: JobId | None = None
    service: str | None = None
    since: datetime | None = None


def tally(conn: Connection, scope: Scope) -> Tally:
    seen = _newest(conn, scope)
    rows = _by_day_and_state(conn, seen)
    found = int(sum(row.rows for row in rows))
    return Tally(
        counts=_counts(rows),
        durations=_durations(conn, scope),
        days=tuple(_day(day, [row for row in rows if row.day == day]) for day in _days(rows)),
        partial=found == NEWEST and _are_more(conn, scope),
    )


def last_run(conn: Connection, scope: Scope) -> Execution | None:
    """The newest that has started, whenever that was."""
    query = _scoped(conn, select(*COLUMNS), scope).where(executions.c.started_at.is_not(None))
    row = conn.execute(query.order_by(*_newest_first(scope)).limit(1)).first()
    return None if row is None else read_execution(row)


def usual_durations(conn: Connection, ids: Collection[JobId]) -> dict[JobId, timedelta]:
    """How long a completed run of each job took on average, of those that have one."""
    seconds = dialects.of(conn).seconds_between(executions.c.started_at, executions.c.completed_at)
    query = (
        select(executions.c.job_id, func.avg(seconds))
        .where(dialects.of(conn).among(executions.c.job_id, ids))
        .where(executions.c.state == ExecutionState.COMPLETED.value, executions.c.started_at.is_not(None))
        .group_by(executions.c.job_id)
    )
    return {JobId(job_id): _span(mean) for job_id, mean in conn.execute(query) if mean is not None}


def job_states(conn: Connection, service: str | None = None) -> dict[JobState, int]:
    query = select(jobs.c.status, func.count()).group_by(jobs.c.status)
    if service is not None:
        query = query.where(owned_by(conn, service))
    states = {state.value: state for state in JobState}
    return {states[status]: count for status, count in conn.execute(query) if status in states}


def next_run_at(conn: Connection, service: str | None = None) -> datetime | None:
    """When the next job fires that is not yet planned."""
    query = select(jobs.c.next_run_at).where(ARMED, jobs.c.status != JobState.CANCELLED.value)
    if service is not None:
        query = query.where(owned_by(conn, service))
    found: datetime | None = conn.execute(query.order_by(jobs.c.next_run_at).limit(1)).scalar()
    return found


def _newest(conn: Connection, scope: Scope) -> Subquery:
    columns = (executions.c[name] for name in ("state", "started_at", "completed_at", "skipped_count"))
    # Both databases write an instant in UTC, and begin it with the date.
    day = func.substr(cast_to(executions.c.scheduled_for, Text), 1, 10).label("day")
    query = _scoped(conn, select(*columns, day), scope)
    return query.order_by(*_newest_first(scope)).limit(NEWEST).subquery()


def _are_more(conn: Connection, scope: Scope) -> bool:
    query = _scoped(conn, select(executions.c.id), scope).order_by(*_newest_first(scope))
    return conn.execute(query.limit(1).offset(NEWEST)).first() is not None


def _scoped(conn: Connection, query: Select[Any], scope: Scope) -> Select[Any]:
    if scope.job_id is not None:
        query = query.where(executions.c.job_id == scope.job_id)
    if scope.service is not None:
        query = query.where(executions.c.job_id.in_(select(jobs.c.id).where(owned_by(conn, scope.service))))
    if scope.since is not None:
        query = query.where(executions.c.scheduled_for >= scope.since)
        if scope.job_id is None:  # ids sort by the time of their making: this is one end of an index
            query = query.where(executions.c.id >= first_id(scope.since - _EARLY))
    return query


def _newest_first(scope: Scope) -> tuple[Any, ...]:
    """Each by the index that there is."""
    if scope.job_id is None:
        return (executions.c.id.desc(),)
    return (executions.c.scheduled_for.desc(), executions.c.cause.desc())


def _by_day_and_state(conn: Connection, seen: Subquery) -> list[Row[Any]]:
    seconds = dialects.of(conn).seconds_between(seen.c.started_at, seen.c.completed_at)
    skips = case((seen.c.skipped_count > 0, seen.c.skipped_count), else_=1)
    query = select(
        seen.c.day,
        seen.c.state,
        func.count().label("rows"),
        func.sum(case((seen.c.state == ExecutionState.SKIPPED.value, skips), else_=1)).label("instants"),
        func.avg(case((seen.c.state == ExecutionState.COMPLETED.value, seconds))).label("took"),
    )
    return list(conn.execute(query.group_by(seen.c.day, seen.c.state)).all())


def _durations(conn: Connection, scope: Scope) -> Durations | None:
    seconds = dialects.of(conn).seconds_between(executions.c.started_at, executions.c.completed_at)
    completed = executions.c.state == ExecutionState.COMPLETED.value
    query = _scoped(conn, select(seconds.label("took")), scope)
    newest = query.where(completed, executions.c.started_at.is_not(None)).order_by(*_newest_first(scope))
    runs = newest.limit(MEASURED).subquery()
    place = func.row_number().over(order_by=runs.c.took).label("place")
    ranked = select(runs.c.took, place, func.count().over().label("total")).subquery()
    shares = [
        func.min(case((ranked.c.place >= cast_to(ranked.c.total, Float) * literal(share), ranked.c.took)))
        for share in _SHARES
    ]
    average, *found = conn.execute(select(func.avg(ranked.c.took), *shares)).one()
    if average is None:
        return None
    p50, p95, p99, longest = map(_span, found)
    return Durations(average=_span(average), p50=p50, p95=p95, p99=p99, max=longest)


_NAMES: Final = {
    "completed": "completed",
    "failed": "failed",
    "cancelled": "cancelled",
    "skipped": "skipped",
    "running": "running",
    "pending": "waiting",
    "queued": "waiting",
}


def _counts(rows: Iterable[Row[Any]]) -> Counts:
    found: Counter[str] = Counter()
    for row in rows:
        found[_NAMES[row.state]] += int(row.instants)
    return Counts(**found)


def _days(rows: Iterable[Row[Any]]) -> list[str]:
    return sorted({row.day for row in rows})


def _day(text: str, rows: list[Row[Any]]) -> Day:
    took = next((row.took for row in rows if row.took is not None), None)
    average = None if took is None else _span(took)
    return Day(day=date.fromisoformat(text), counts=_counts(rows), average=average)


def _span(seconds: Any) -> timedelta:
    """Milliseconds are as exact as SQLite counts; a clock may have been set back while something ran."""
    return timedelta(milliseconds=max(round(float(seconds) * 1000), 0))
