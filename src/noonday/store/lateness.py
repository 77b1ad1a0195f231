"""How late the last runs of a job began."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, select

from noonday.domain.execution import Cause
from noonday.domain.job import JobId
from noonday.store.tables import executions

__all__ = ["lately_late"]

_LOOKED_AT: Final = 300  # executions, however few of them are such runs


def lately_late(conn: Connection, job_id: JobId, runs: int = 30) -> list[timedelta]:
    """Of the newest runs by its schedule, without those of a second attempt, which are late on purpose."""
    newest = (
        select(*(executions.c[name] for name in ("cause", "attempt", "scheduled_for", "started_at")))
        .where(executions.c.job_id == job_id)
        .order_by(executions.c.scheduled_for.desc(), executions.c.cause.desc())
        .limit(_LOOKED_AT)
        .subquery()
    )
    query = (
        select(newest.c.scheduled_for, newest.c.started_at)
        .where(
            newest.c.cause == Cause.SCHEDULE.value, newest.c.attempt == 1, newest.c.started_at.is_not(None)
        )
        .order_by(newest.c.scheduled_for.desc())
        .limit(runs)
    )
    return [max(row.started_at - row.scheduled_for, timedelta()) for row in conn.execute(query)]
