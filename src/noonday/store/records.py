"""Rows for the history: each lapse one that says why nothing ran, and the runs that somebody asks for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState, Road
from noonday.domain.job import Job
from noonday.domain.planning import Lapse
from noonday.ids import new_id


def road_of(job: Job) -> Road:
    return Road.STREAMS if job.scheduler_version == Road.STREAMS else Road.DATABASE


def lapsed(job: Job, lapse: Lapse, now: datetime) -> Execution:
    return Execution(
        id=ExecutionId(new_id(now)),
        job_id=job.id,
        cause=Cause.SCHEDULE,
        scheduled_for=lapse.scheduled_for,
        available_at=None,
        state=ExecutionState.SKIPPED,
        lane=job.lane,
        road=road_of(job),
        through_at=lapse.through_at,
        skipped_count=lapse.count,
        skip_reason=lapse.reason,
        detail=lapse.detail,
        completed_at=now,
        created_at=now,
    )


def lapses(job: Job, found: Iterable[Lapse | None], now: datetime) -> list[Execution]:
    return [lapsed(job, lapse, now) for lapse in found if lapse is not None]


def forced(job: Job, now: datetime, by: str | None, config: Mapping[str, Any] | None) -> Execution:
    return Execution(
        id=ExecutionId(new_id(now)),
        job_id=job.id,
        cause=Cause.MANUAL,
        scheduled_for=now,
        available_at=now,
        state=ExecutionState.QUEUED,
        lane=job.lane,
        road=road_of(job),
        triggered_by=by,
        config=config,
        created_at=now,
    )
