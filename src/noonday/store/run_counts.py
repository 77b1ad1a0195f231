"""How often jobs ran and how often well, for a page of them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from noonday.domain.execution import ExecutionState
from noonday.domain.job import JobId
from noonday.store import dialects
from noonday.store.tables import executions

__all__ = ["NO_RUNS", "RunCounts", "run_counts"]

_ENDED = (ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCounts:
    """Of the runs that came to an end and are still kept."""

    total: int = 0
    successful: int = 0
    failed: int = 0


NO_RUNS = RunCounts()


def run_counts(conn: Connection, ids: Collection[JobId]) -> dict[JobId, RunCounts]:
    """Of those of the jobs that have run."""
    query = (
        select(executions.c.job_id, executions.c.state, func.count())
        .where(dialects.of(conn).among(executions.c.job_id, ids))
        .where(executions.c.state.in_([state.value for state in _ENDED]))
        .group_by(executions.c.job_id, executions.c.state)
    )
    found: dict[JobId, dict[str, int]] = {}
    for job_id, state, count in conn.execute(query):
        found.setdefault(JobId(job_id), {})[state] = count
    return {
        job_id: RunCounts(
            total=sum(counts.values()),
            successful=counts.get(ExecutionState.COMPLETED.value, 0),
            failed=counts.get(ExecutionState.FAILED.value, 0),
        )
        for job_id, counts in found.items()
    }
