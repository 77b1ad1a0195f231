"""What happened: pages of executions, their attempts, and figures per job."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, func, select

from noonday.domain.execution import Attempt, Execution, ExecutionState
from noonday.store import dialects
from noonday.store.execution_rows import COLUMNS, read_attempt, read_execution
from noonday.store.pages import Page
from noonday.store.pruning import prune
from noonday.store.reading import may_be_id
from noonday.store.tables import attempts as attempts_table
from noonday.store.tables import executions

__all__ = ["Stats", "attempts", "page", "prune", "stats"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Of the executions that are still kept."""

    counts: dict[ExecutionState, int]
    average_duration_ms: float | None  # of completed ones
    last_started_at: datetime | None

    @property
    def ended(self) -> int:
        return sum(self.counts.get(state, 0) for state in _ENDED)

    @property
    def success_rate(self) -> float:
        """0..1 of what ran to an end; 0 if nothing did."""
        return self.counts.get(ExecutionState.COMPLETED, 0) / self.ended if self.ended else 0.0


_ENDED = (ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.CANCELLED)


def page(
    conn: Connection,
    job_id: str | None = None,
    limit: int = 50,
    offset: int = 0,
    status: ExecutionState | str | None = None,
) -> Page[Execution]:
    """Newest first: of a job by the time it was due, of all by the time it was planned."""
    if job_id is not None and not may_be_id(conn, job_id):
        return Page(items=(), total=0, limit=limit, offset=offset)
    order = (executions.c.id,) if job_id is None else (executions.c.scheduled_for, executions.c.id)
    query = _filtered(select(*COLUMNS), job_id, status).order_by(*(column.desc() for column in order))
    total = _filtered(select(func.count()).select_from(executions), job_id, status)
    return Page(
        items=tuple(read_execution(row) for row in conn.execute(query.limit(limit).offset(offset))),
        total=conn.execute(total).scalar_one(),
        limit=limit,
        offset=offset,
    )


def _filtered(query: Select[Any], job_id: str | None, status: str | None) -> Select[Any]:
    if job_id is not None:
        query = query.where(executions.c.job_id == job_id)
    if status is not None:
        query = query.where(executions.c.state == str(status))
    return query


def attempts(conn: Connection, execution_id: str) -> list[Attempt]:
    """In order."""
    if not may_be_id(conn, execution_id):
        return []
    query = select(attempts_table).where(attempts_table.c.execution_id == execution_id)
    rows = conn.execute(query.order_by(attempts_table.c.number)).mappings()
    return [read_attempt(row) for row in rows]


def stats(conn: Connection, job_id: str) -> Stats:
    counted = conn.execute(
        select(executions.c.state, func.count())
        .where(executions.c.job_id == job_id)
        .group_by(executions.c.state)
    )
    seconds = dialects.of(conn).seconds_between(executions.c.started_at, executions.c.completed_at)
    average = (
        select(func.avg(seconds))
        .where(executions.c.job_id == job_id, executions.c.state == ExecutionState.COMPLETED.value)
        .where(executions.c.started_at.is_not(None))
    )
    mean = conn.execute(average).scalar()
    last = select(func.max(executions.c.started_at)).where(executions.c.job_id == job_id)
    return Stats(
        counts={ExecutionState(state): count for state, count in counted},
        average_duration_ms=None if mean is None else float(mean) * 1000,
        last_started_at=conn.execute(last).scalar(),
    )
