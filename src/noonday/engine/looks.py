"""Questions that only the engine asks of the store: what was left behind, which tasks are missed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Select, Text, bindparam, select

from noonday.domain.execution import Execution, ExecutionId, WaitReason
from noonday.domain.outcome import Lost, Outcome, Released
from noonday.store.dialects import Answers
from noonday.store.execution_rows import COLUMNS, read_execution
from noonday.store.executions import Ending
from noonday.store.prepared import prepared
from noonday.store.tables import PENDING, RUNNING, executions, jobs

MOST = 1000


def held_by(conn: Connection, instance_id: str, now: datetime) -> list[Ending]:
    """What an instance of this id was running itself when its process died, MOST at once. What it had claimed
    ahead of a moment that is still to come never began."""
    query = (
        select(executions.c.id, executions.c.lease_token, executions.c.started_at)
        .where(RUNNING, ~executions.c.remote, executions.c.instance_id == instance_id)
        .limit(MOST)
    )
    why = f"instance {instance_id} was started anew"
    lost, released = Lost(detail=why), Released(detail=f"{why} before its moment")
    return [
        Ending(
            execution_id=ExecutionId(row.id),
            token=row.lease_token or "",
            outcome=released if row.started_at is not None and row.started_at > now else lost,
        )
        for row in conn.execute(query)
    ]


def marked(conn: Connection, mark: str, outcome: Outcome) -> list[Ending]:
    """What runs on tokens that begin with this mark."""
    query = select(executions.c.id, executions.c.lease_token).where(
        RUNNING, executions.c.lease_token.startswith(mark, autoescape=True)
    )
    return [
        Ending(execution_id=ExecutionId(row.id), token=row.lease_token, outcome=outcome)
        for row in conn.execute(query)
    ]


def parked_tasks(conn: Connection) -> list[str]:
    """Python tasks that executions wait for because nobody knew them."""
    return [name for name in _parked_tasks(conn).scalars() if name is not None]


@prepared
def _parked_tasks(dialect: Answers) -> Select[Any]:
    return (
        select(dialect.text_of(jobs.c.target, "task"))
        .join_from(executions, jobs, jobs.c.id == executions.c.job_id)
        .where(PENDING, executions.c.wait_reason == WaitReason.UNKNOWN_TASK.value)
        .where(executions.c.available_at.is_(None))
        .distinct()
        .limit(MOST)
    )


def remote_to_cancel(conn: Connection, instance_id: str) -> list[Execution]:
    """Runs that this instance gave to a target elsewhere, and that somebody wants to stop."""
    return [read_execution(row) for row in _remote_to_cancel(conn, own=instance_id)]


@prepared
def _remote_to_cancel(_: Answers) -> Select[Any]:
    mine = executions.c.instance_id == bindparam("own", type_=Text)
    return (
        select(*COLUMNS)
        .where(RUNNING, executions.c.remote, executions.c.cancel_url.is_not(None))
        .where(executions.c.cancel_requested_at.is_not(None), mine)
        .limit(MOST)
    )
