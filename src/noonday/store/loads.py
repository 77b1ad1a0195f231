"""How many runs were due in each hour, how many of them failed, and how long they took."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, func, select

from noonday.domain.execution import ExecutionState
from noonday.domain.job import JobId
from noonday.store import dialects
from noonday.store.tables import executions
from noonday.store.tallies import Width, counted

__all__ = ["Hour", "hours", "usual_spans"]

_NEWEST: Final = 20_000  # runs that tell how long a job usually takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    starts: int = 0
    failed: int = 0
    busy: timedelta = timedelta()


def hours(
    conn: Connection, since: datetime, until: datetime, service: str | None = None
) -> dict[datetime, Hour]:
    """By the hour of UTC in which runs were due; what was skipped is none. As `tallies.counted`."""
    found = counted(conn, since, until, Width.HOUR, service)
    return {
        at: Hour(starts=one.starts, failed=one.states.get(ExecutionState.FAILED, 0), busy=one.busy)
        for at, one in found.items()
        if one.starts
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
