"""How many runs were due in each hour, how many of them failed, and how long they took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Text, case, func, select
from sqlalchemy import cast as cast_to

from noonday.domain.execution import ExecutionState
from noonday.domain.job import JobId
from noonday.ids import first_id
from noonday.store import dialects
from noonday.store.owners import owned_by
from noonday.store.tables import executions, jobs

__all__ = ["Hour", "hours", "usual_spans"]

_EARLY: Final = timedelta(hours=1)  # more than anything is planned ahead of its time
_LATE: Final = timedelta(days=1)  # a row made longer after its due time, as by a backfill, is not counted
_NEWEST: Final = 20_000  # runs that tell how long a job usually takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    starts: int = 0
    failed: int = 0
    busy: timedelta = timedelta()


def hours(
    conn: Connection, since: datetime, until: datetime, service: str | None = None
) -> dict[datetime, Hour]:
    """By the hour of UTC in which runs were due, from `since` until before `until`; what was skipped is none.

    Ids sort by the time of their making, so this reads the rows of the span and no others.
    """
    seconds = dialects.of(conn).seconds_between(executions.c.started_at, executions.c.completed_at)
    # Both databases write an instant in UTC, and begin it with the date and the hour.
    hour = func.substr(cast_to(executions.c.scheduled_for, Text), 1, 13).label("hour")
    failed = executions.c.state == ExecutionState.FAILED.value
    query = select(
        hour, func.count(), func.sum(case((failed, 1), else_=0)), func.sum(func.coalesce(seconds, 0.0))
    ).where(
        executions.c.id >= first_id(since - _EARLY),
        executions.c.id < first_id(until + _LATE),
        executions.c.scheduled_for >= since,
        executions.c.scheduled_for < until,
        executions.c.state != ExecutionState.SKIPPED.value,
    )
    if service is not None:
        query = query.where(executions.c.job_id.in_(select(jobs.c.id).where(owned_by(conn, service))))
    return {
        datetime.strptime(text, "%Y-%m-%d %H").replace(tzinfo=UTC): Hour(
            starts=int(count), failed=int(bad), busy=timedelta(seconds=max(float(busy), 0.0))
        )
        for text, count, bad, busy in conn.execute(query.group_by(hour))
    }


def usual_spans(conn: Connection) -> dict[JobId, timedelta]:
    """How long the newest completed runs took on average, of each job that has one among them."""
    seconds = dialects.of(conn).seconds_between(executions.c.started_at, executions.c.completed_at)
    newest = (
        select(executions.c.job_id, seconds.label("took"), executions.c.state)
        .order_by(executions.c.id.desc())
        .limit(_NEWEST)
        .subquery()
    )
    query = (
        select(newest.c.job_id, func.avg(newest.c.took))
        .where(newest.c.state == ExecutionState.COMPLETED.value, newest.c.took.is_not(None))
        .group_by(newest.c.job_id)
    )
    return {JobId(job): timedelta(seconds=max(float(mean), 0.0)) for job, mean in conn.execute(query)}
