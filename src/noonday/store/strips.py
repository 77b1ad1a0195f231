"""The last runs of some jobs, a few of each: what a list shows beside a job's name."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Integer, Select, bindparam, select

from noonday.domain.execution import ExecutionId, ExecutionState
from noonday.domain.job import JobId
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared
from noonday.store.tables import executions, jobs

MOST_JOBS: Final = 200  # of one look
_SHOWN: Final = tuple(
    state.value for state in ExecutionState if state not in (ExecutionState.PENDING, ExecutionState.QUEUED)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`took` is None for what has not ended, or never started."""

    id: ExecutionId
    state: ExecutionState
    due: datetime
    took: timedelta | None


def strips(conn: Connection, ids: Collection[JobId], runs: int = 30) -> dict[JobId, tuple[Bar, ...]]:
    """Of each job its newest runs and skips, oldest first; reads no more rows than it gives."""
    assert len(ids) <= MOST_JOBS
    found: dict[JobId, list[Bar]] = {job_id: [] for job_id in ids}
    for row in _newest(conn, ids=ids, runs=runs):
        ended = row.started_at is not None and row.completed_at is not None
        took = max(row.completed_at - row.started_at, timedelta()) if ended else None
        bar = Bar(id=ExecutionId(row.id), state=ExecutionState(row.state), due=row.scheduled_for, took=took)
        found[JobId(row.job_id)].append(bar)
    return {job_id: tuple(sorted(bars, key=lambda bar: bar.due)) for job_id, bars in found.items()}


@prepared
def _newest(ask: Answers) -> Select[Any]:
    """By the index of slots, from its end, for each job."""
    other = executions.alias("newest")
    newest = (
        select(other.c.id)
        .where(other.c.job_id == jobs.c.id, other.c.state.in_(_SHOWN))
        .order_by(other.c.scheduled_for.desc(), other.c.cause.desc())
        .limit(bindparam("runs", type_=Integer))
        .correlate(jobs)
        .scalar_subquery()
    )
    names = ("id", "job_id", "state", "scheduled_for", "started_at", "completed_at")
    return (
        select(*(executions.c[name] for name in names))
        .select_from(jobs.join(executions, ask.picked(executions.c.id, newest)))
        .where(ask.listed(jobs.c.id, "ids"))
    )
