"""Questions that only the engine asks of the store: what was left behind, which tasks are missed."""

from __future__ import annotations

from sqlalchemy import Connection, select

from noonday.domain.execution import Execution, ExecutionId, WaitReason
from noonday.domain.outcome import Lost, Outcome
from noonday.store import dialects
from noonday.store.execution_rows import COLUMNS, read_execution
from noonday.store.executions import Ending
from noonday.store.tables import PENDING, RUNNING, executions, jobs

MOST = 1000


def held_by(conn: Connection, instance_id: str) -> list[Ending]:
    """What an instance of this id was running itself when its process died."""
    query = (
        select(executions.c.id, executions.c.lease_token)
        .where(RUNNING, ~executions.c.remote, executions.c.instance_id == instance_id)
        .limit(MOST)
    )
    lost = Lost(detail=f"instance {instance_id} was started anew")
    return [
        Ending(execution_id=ExecutionId(row.id), token=row.lease_token or "", outcome=lost)
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
    task = dialects.of(conn).text_of(jobs.c.target, "task")
    query = (
        select(task)
        .join_from(executions, jobs, jobs.c.id == executions.c.job_id)
        .where(PENDING, executions.c.wait_reason == WaitReason.UNKNOWN_TASK.value)
        .where(executions.c.available_at.is_(None))
        .distinct()
        .limit(MOST)
    )
    return [name for name in conn.execute(query).scalars() if name is not None]


def remote_to_cancel(conn: Connection, instance_id: str) -> list[Execution]:
    """Runs that this instance gave to a target elsewhere, and that somebody wants to stop."""
    query = (
        select(*COLUMNS)
        .where(RUNNING, executions.c.remote, executions.c.cancel_url.is_not(None))
        .where(executions.c.cancel_requested_at.is_not(None), executions.c.instance_id == instance_id)
        .limit(MOST)
    )
    return [read_execution(row) for row in conn.execute(query)]
