"""Rows for what comes from outside: runs in slots of their own, or one row for what a paused job missed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, func, select

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState, SkipReason
from noonday.domain.job import Job
from noonday.ids import new_id
from noonday.store import dialects
from noonday.store.records import road_of
from noonday.store.tables import executions

TICK: Final = timedelta(microseconds=1)


def free_slots(conn: Connection, job_ids: Collection[str], now: datetime) -> dict[str, datetime]:
    """The next free slot of each job: now, or behind those of causes within the same moment."""
    newest = (
        select(executions.c.job_id, func.max(executions.c.scheduled_for))
        .where(dialects.of(conn).among(executions.c.job_id, job_ids), executions.c.scheduled_for >= now)
        .where(executions.c.cause == Cause.TRIGGER.value)
        .group_by(executions.c.job_id)
    )
    taken: dict[str, datetime] = {row[0]: row[1] for row in conn.execute(newest)} if job_ids else {}
    return {job_id: taken[job_id] + TICK if job_id in taken else now for job_id in job_ids}


def run(job: Job, *, by: str, config: Mapping[str, Any], slot: datetime, now: datetime) -> Execution:
    return Execution(
        id=ExecutionId(new_id(now)),
        job_id=job.id,
        cause=Cause.TRIGGER,
        scheduled_for=slot,
        available_at=now,
        state=ExecutionState.QUEUED,
        lane=job.lane,
        road=road_of(job),
        triggered_by=by,
        config=config,
        created_at=now,
    )


def lapse(runs: Sequence[Execution], detail: str, now: datetime) -> Execution:
    """One row in place of the runs of a paused job."""
    first, last = runs[0], runs[-1]
    return Execution(
        id=first.id,
        job_id=first.job_id,
        cause=Cause.TRIGGER,
        scheduled_for=first.scheduled_for,
        through_at=last.scheduled_for if len(runs) > 1 else None,
        skipped_count=len(runs),
        skip_reason=SkipReason.PAUSED,
        detail=detail,
        triggered_by=first.triggered_by,
        available_at=None,
        state=ExecutionState.SKIPPED,
        lane=first.lane,
        road=first.road,
        completed_at=now,
        created_at=now,
    )
