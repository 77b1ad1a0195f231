"""History that was not lived here: runs written as if they had been, and what a job keeps of the last."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, update

from noonday.domain.execution import Attempt, Execution, ExecutionState
from noonday.domain.job import Job
from noonday.store import dialects, outputs
from noonday.store.execution_rows import attempt_values, planned_values, result_value, settled_values
from noonday.store.notices import JOBS, tell
from noonday.store.tables import SLOT, attempts, executions, jobs

__all__ = ["Ran", "write"]

_BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """An ended execution with its attempts, and what the last of them wrote."""

    execution: Execution
    attempts: tuple[Attempt, ...] = ()
    output: str = ""


def write(conn: Connection, job: Job, ran: Sequence[Ran], next_run_at: datetime | None) -> None:
    """All of it in order of time, for a job that has no other history; it goes on at `next_run_at`."""
    dialect = dialects.of(conn)
    for start in range(0, len(ran), _BATCH):
        batch = ran[start : start + _BATCH]
        dialect.insert(conn, executions, [_values(one.execution) for one in batch], SLOT)
        tried = [_tried(attempt) for one in batch for attempt in one.attempts]
        dialect.insert(conn, attempts, tried, ("execution_id", "number"))
    for one in ran:
        if one.output and one.execution.completed_at:
            run = one.execution
            outputs.add(conn, run.id, run.attempt, one.output, one.execution.completed_at)
    conn.execute(
        update(jobs).where(jobs.c.id == job.id).values(next_run_at=next_run_at, **_kept([*ran], job))
    )
    tell(conn, JOBS)


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
