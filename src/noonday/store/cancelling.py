"""Cancelling: at once where nothing runs yet, by request where it does."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Connection, select, update

from noonday.domain.errors import Conflict, NotFound
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.lifecycle import next_after_completion
from noonday.store import dialects
from noonday.store.definitions import KEPT, readable_jobs
from noonday.store.execution_rows import COLUMNS, read_execution
from noonday.store.notices import JOBS, tell
from noonday.store.reading import may_be_id
from noonday.store.releasing import ask_to_stop, release_dependants, rest
from noonday.store.settled_jobs import rearms
from noonday.store.tables import OPEN, executions, jobs


def request_cancel(conn: Connection, execution_id: str, by: str, now: datetime) -> Execution:
    """What waits is cancelled; what runs is asked to stop; what has ended is a Conflict."""
    found = _lock(conn, execution_id)
    if not found.state.open:
        raise Conflict(f"execution {execution_id} is already {found.state}")
    _cancel(conn, [found], by, now)
    return _one(conn, execution_id)


def cancel_of_job(conn: Connection, job_id: str, by: str, now: datetime) -> int:
    """Everything that is open of a job; returns how many executions that is."""
    _lock_job(conn, job_id)
    query = select(*COLUMNS).where(OPEN, executions.c.job_id == job_id).order_by(executions.c.id)
    found = [read_execution(row) for row in conn.execute(dialects.of(conn).locked(query, executions))]
    _cancel(conn, found, by, now)
    return len(found)


def _lock(conn: Connection, execution_id: str) -> Execution:
    """The job first, as everybody else does."""
    found = _one(conn, execution_id)
    _lock_job(conn, found.job_id)
    query = select(*COLUMNS).where(executions.c.id == execution_id)
    row = conn.execute(dialects.of(conn).locked(query, executions)).first()
    if row is None:
        raise NotFound(f"there is no execution {execution_id!r}")
    return read_execution(row)


def _one(conn: Connection, execution_id: str) -> Execution:
    row = None
    if may_be_id(conn, execution_id):
        row = conn.execute(select(*COLUMNS).where(executions.c.id == execution_id)).first()
    if row is None:
        raise NotFound(f"there is no execution {execution_id!r}")
    return read_execution(row)


def _lock_job(conn: Connection, job_id: str) -> None:
    conn.execute(dialects.of(conn).locked(select(jobs.c.id).where(jobs.c.id == job_id), jobs))


def _cancel(conn: Connection, found: list[Execution], by: str, now: datetime) -> None:
    running = [one.id for one in found if one.state is ExecutionState.RUNNING]
    waiting = [one for one in found if one.state is not ExecutionState.RUNNING]
    if running:
        ask_to_stop(conn, running, by, now)
    if not waiting:
        return
    values: dict[str, Any] = {
        "state": "cancelled",
        "wait_reason": None,
        "detail": f"cancelled by {by}",
        "cancel_requested_at": now,
        "cancel_requested_by": by,
        "completed_at": now,
    }
    ids = [one.id for one in waiting]
    conn.execute(update(executions).where(dialects.of(conn).among(executions.c.id, ids)).values(values))
    job_ids = {one.job_id for one in waiting}
    release_dependants(conn, job_ids, now)
    _rest(conn, waiting, now)


def _rest(conn: Connection, cancelled: list[Execution], now: datetime) -> None:
    """A cancelled run of a fixed-delay job still makes the next one due."""
    ids = list({one.job_id for one in cancelled})
    query = select(*KEPT).where(dialects.of(conn).among(jobs.c.id, ids))
    found = readable_jobs(conn, conn.execute(query).all())
    for one in cancelled:
        job = found.get(one.job_id)
        if job is not None and rearms(job, one):
            again = next_after_completion(job, now)
            conn.execute(update(jobs).where(jobs.c.id == job.id).values(next_run_at=again))
            tell(conn, JOBS)
    rest(conn, readable_jobs(conn, conn.execute(query).all()), now)
