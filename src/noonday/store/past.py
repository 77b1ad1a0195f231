"""History that was not lived here: runs written as if they had been, and what a job keeps of the last."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, update

from noonday.domain.execution import Attempt, Execution, ExecutionState
from noonday.domain.job import Job, JobId
from noonday.store import dialects, outputs, tallying
from noonday.store.execution_rows import attempt_values, planned_values, result_value, settled_values
from noonday.store.front_tables import deliveries
from noonday.store.notices import JOBS, tell
from noonday.store.tables import SLOT, attempts, audit, executions, jobs

__all__ = ["Ran", "forget", "write"]

_BATCH = 500
_SHOWN = "demo-"  # begins the ids of deliveries that nobody made


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """An ended execution with its attempts, what the last of them wrote, and the call that started it."""

    execution: Execution
    attempts: tuple[Attempt, ...] = ()
    output: str = ""
    path: str | None = None


def write(conn: Connection, job: Job, ran: Sequence[Ran], next_run_at: datetime | None) -> None:
    """All of it in order of time, for a job that has no other history; it goes on at `next_run_at`."""
    dialect = dialects.of(conn)
    tallying.restart(conn)  # the ids are of then, and may have been passed
    for start in range(0, len(ran), _BATCH):
        batch = ran[start : start + _BATCH]
        dialect.insert(conn, executions, [_values(one.execution) for one in batch], SLOT)
        tried = [_tried(attempt) for one in batch for attempt in one.attempts]
        dialect.insert(conn, attempts, tried, ("execution_id", "number"))
    for one in ran:
        if one.output and one.execution.completed_at:
            run = one.execution
            outputs.add(conn, run.id, run.attempt, one.output, one.execution.completed_at)
    dialect.insert(conn, deliveries, [_delivered(job, one) for one in ran if one.path], ("id",))
    conn.execute(
        update(jobs).where(jobs.c.id == job.id).values(next_run_at=next_run_at, **_kept([*ran], job))
    )
    tell(conn, JOBS)


def forget(conn: Connection, gone: Collection[JobId], services: Collection[str]) -> None:
    """What nobody did: the calls, and what is told of these jobs and services in the audit."""
    among = dialects.of(conn).among
    conn.execute(delete(deliveries).where(deliveries.c.id.like(f"{_SHOWN}%")))
    conn.execute(delete(audit).where(audit.c.kind == "job", among(audit.c.subject_id, gone)))
    conn.execute(delete(audit).where(audit.c.kind == "service", among(audit.c.subject_id, services)))


def _delivered(job: Job, one: Ran) -> dict[str, Any]:
    run = one.execution
    started = {"job_id": job.id, "job_name": job.name, "execution_id": run.id, "status": "queued"}
    return {"id": f"{_SHOWN}{run.id}", "path": one.path, "received_at": run.created_at, "started": [started]}


def _values(execution: Execution) -> dict[str, Any]:
    """Every column: what planning writes, what claiming writes and what settling writes."""
    claimed = {"attempt": execution.attempt, "claimed_at": execution.claimed_at}
    return planned_values(execution) | settled_values(execution) | claimed


def _tried(attempt: Attempt) -> dict[str, Any]:
    return attempt_values(attempt) | {"result": result_value(attempt.result)}


def _kept(ran: list[Ran], job: Job) -> dict[str, Any]:
    runs = [one.execution for one in ran if one.execution.state is not ExecutionState.SKIPPED]
    good = [run for run in runs if run.state is ExecutionState.COMPLETED]
    values: dict[str, Any] = {
        "row_count": len(ran),
        "execution_count": len(runs),
        "fire_count": job.fire_count + len(runs),
    }
    if runs:
        last = runs[-1]
        values |= {
            "last_run_at": last.started_at,
            "last_status": last.state.value,
            "last_status_for": last.scheduled_for,
        }
    if good:
        values |= {"last_success_at": good[-1].completed_at, "last_success_for": good[-1].scheduled_for}
    return values
