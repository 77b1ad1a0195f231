"""All of the scheduler in a few figures and short lists, each at a bounded cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, case, func, select

from noonday.domain.breaker import BreakerState
from noonday.domain.execution import Cause, ExecutionState, Road
from noonday.domain.job import JobState, Lane
from noonday.store import dialects
from noonday.store.owners import owned_by
from noonday.store.tables import ARMED, CLAIMABLE, RUNNING, breakers, executions, jobs

__all__ = [
    "LATE_AFTER",
    "SOON",
    "Failing",
    "Going",
    "JobFigures",
    "Next",
    "RunFigures",
    "breakers_by_state",
    "coming",
    "failing",
    "going",
    "job_figures",
    "run_figures",
]

LATE_AFTER: Final = timedelta(seconds=10)  # something that could have started so long ago is late
SOON: Final = timedelta(hours=1)
_PLANNED: Final = 8  # fires of one job, at most, that are planned ahead where it fires every second


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFigures:
    total: int
    paused: int
    disabled: int
    failing: int  # whose last run failed
    soon: int  # that fire within SOON


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    running: int
    waiting: dict[Lane, int]  # claimable and due, on either road
    oldest: dict[Lane, datetime]  # since when the first of them could have started
    late: int  # of those, since more than LATE_AFTER


@dataclass(frozen=True, slots=True, kw_only=True)
class Going:
    """A run that is going on."""

    execution_id: str
    job_name: str
    started_at: datetime | None
    deadline_at: datetime | None
    attempt: int
    progress: float | None
    message: str | None
    instance_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failing:
    """A job whose last run failed, and what that run said."""

    job_id: str
    job_name: str
    failed_at: datetime | None
    last_success_at: datetime | None
    execution_id: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    """The next fire of a job."""

    job_name: str
    at: datetime


def job_figures(conn: Connection, now: datetime, service: str | None = None) -> JobFigures:
    """One look at every job; the same counts that a search finds."""
    armed = and_(jobs.c.schedule_enabled, ~jobs.c.is_paused, jobs.c.status != JobState.CANCELLED.value)
    counts = (
        jobs.c.is_paused,
        ~jobs.c.schedule_enabled,
        jobs.c.last_status == ExecutionState.FAILED.value,
        and_(armed, jobs.c.next_run_at < now + SOON),
    )
    sums = (func.coalesce(func.sum(case((each, 1), else_=0)), 0) for each in counts)
    query = select(func.count(), *sums).select_from(jobs).where(*_own_jobs(conn, service))
    total, paused, disabled, failed, soon = map(int, conn.execute(query).one())
    return JobFigures(total=total, paused=paused, disabled=disabled, failing=failed, soon=soon)


def run_figures(conn: Connection, now: datetime, service: str | None = None) -> RunFigures:
    own = _own_runs(conn, service)
    running = conn.execute(select(func.count()).select_from(executions).where(RUNNING, *own)).scalar_one()
    late = func.sum(case((executions.c.available_at < now - LATE_AFTER, 1), else_=0))
    query = (
        select(executions.c.lane, func.count(), late, func.min(executions.c.available_at))
        .where(CLAIMABLE, executions.c.available_at <= now, *own)
        .group_by(executions.c.lane)
    )
    rows = conn.execute(query).all()
    return RunFigures(
        running=running,
        waiting=dict.fromkeys(Lane, 0) | {Lane(lane): int(count) for lane, count, *_ in rows},
        oldest={Lane(lane): oldest for lane, _, _, oldest in rows},
        late=sum(int(late) for _, _, late, _ in rows),
    )


def breakers_by_state(conn: Connection) -> dict[BreakerState, int]:
    query = select(breakers.c.state, func.count()).group_by(breakers.c.state)
    known = {state.value: state for state in BreakerState}
    return {known[state]: count for state, count in conn.execute(query) if state in known}


def going(conn: Connection, limit: int, service: str | None = None) -> tuple[Going, ...]:
    """What runs, the longest first."""
    columns = ("started_at", "deadline_at", "attempt", "progress", "instance_id")
    query = (
        select(
            executions.c.id.label("execution_id"),
            jobs.c.name.label("job_name"),
            executions.c.progress_message.label("message"),
            *(executions.c[name] for name in columns),
        )
        .join(jobs, jobs.c.id == executions.c.job_id)
        .where(RUNNING, *_own_jobs(conn, service))
        .order_by(executions.c.started_at, executions.c.id)
    )
    return tuple(Going(**row) for row in conn.execute(query.limit(limit)).mappings())


def failing(conn: Connection, limit: int, service: str | None = None) -> tuple[Failing, ...]:
    """Those that failed last come first."""
    query = (
        select(jobs.c.id, jobs.c.name, jobs.c.last_run_at, jobs.c.last_success_at)
        .where(jobs.c.last_status == ExecutionState.FAILED.value, *_own_jobs(conn, service))
        .order_by(jobs.c.last_run_at.desc(), jobs.c.id)
        .limit(limit)
    )
    rows = conn.execute(query).all()
    errors = _errors(conn, [row.id for row in rows])
    return tuple(
        Failing(
            job_id=row.id,
            job_name=row.name or row.id,
            failed_at=row.last_run_at,
            last_success_at=row.last_success_at,
            **errors.get(row.id, {}),
        )
        for row in rows
    )


def coming(conn: Connection, now: datetime, limit: int, service: str | None = None) -> tuple[Next, ...]:
    """The jobs that fire next, each once: the fires that are planned come before the cursors."""
    mine = [jobs.c.status != JobState.CANCELLED.value, *_own_jobs(conn, service)]
    cursors = select(jobs.c.id, jobs.c.name, jobs.c.next_run_at.label("at")).where(ARMED, *mine)
    rows = list(conn.execute(cursors.order_by(jobs.c.next_run_at, jobs.c.id).limit(limit)))
    for lane in Lane:
        for road in Road:
            ahead = select(jobs.c.id, jobs.c.name, executions.c.scheduled_for.label("at"))
            planned = ahead.join(executions, executions.c.job_id == jobs.c.id).where(
                CLAIMABLE,
                executions.c.road == road.value,
                executions.c.lane == lane.value,
                executions.c.available_at > now,
                executions.c.cause == Cause.SCHEDULE.value,
                jobs.c.schedule_enabled & ~jobs.c.is_paused,
                *mine,
            )
            rows += conn.execute(planned.order_by(executions.c.available_at).limit(limit * _PLANNED))
    first: dict[str, Next] = {}
    for row in sorted(rows, key=lambda row: (row.at, row.id)):
        first.setdefault(row.id, Next(job_name=row.name or row.id, at=row.at))
    return tuple(first.values())[:limit]


def _errors(conn: Connection, ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """Of the run that a job's last status tells of; found by its slot."""
    if not ids:
        return {}
    query = (
        select(executions.c.job_id, executions.c.id, executions.c.error)
        .join(
            jobs, and_(jobs.c.id == executions.c.job_id, jobs.c.last_status_for == executions.c.scheduled_for)
        )
        .where(dialects.of(conn).among(executions.c.job_id, ids))
        .where(executions.c.state == ExecutionState.FAILED.value)
        .order_by(executions.c.id)
    )
    return {job_id: {"execution_id": found, "error": error} for job_id, found, error in conn.execute(query)}


def _own_jobs(conn: Connection, service: str | None) -> list[ColumnElement[bool]]:
    return [] if service is None else [owned_by(conn, service)]


def _own_runs(conn: Connection, service: str | None) -> list[ColumnElement[bool]]:
    if service is None:
        return []
    return [executions.c.job_id.in_(select(jobs.c.id).where(owned_by(conn, service)))]
