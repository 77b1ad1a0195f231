"""What runs or waits of one job, at this moment."""

from __future__ import annotations

from sqlalchemy import Connection, func, select

from noonday.domain.execution import Execution
from noonday.domain.job import JobId
from noonday.store.execution_rows import COLUMNS, read_execution
from noonday.store.tables import OPEN, executions


def open_runs(conn: Connection, job_id: JobId, limit: int = 20) -> list[Execution]:
    """The oldest first, by the index of what is open."""
    query = select(*COLUMNS).where(OPEN, executions.c.job_id == job_id)
    # An expression, or else SQLite goes through all of the job's history, which is sorted already.
    due = func.coalesce(executions.c.scheduled_for, executions.c.created_at)
    ordered = query.order_by(due, executions.c.id).limit(limit)
    return [read_execution(row) for row in conn.execute(ordered)]
