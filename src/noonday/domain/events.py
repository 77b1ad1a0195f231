"""What happened, as values: actors emit them, telemetry turns them into log lines and metrics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from noonday.domain.execution import ExecutionId, ExecutionState, SkipReason, WaitReason
from noonday.domain.job import JobId

SKIP_WORDS: Mapping[SkipReason, str] = {
    SkipReason.PAUSED: "the job was paused",
    SkipReason.DISABLED: "the job was disabled",
    SkipReason.WINDOW: "outside the job's windows",
    SkipReason.CALENDAR: "an excluded date or a public holiday",
    SkipReason.OVERLAP: "earlier runs were still going",
    SkipReason.MISFIRE: "missed by more than the grace",
    SkipReason.COALESCED: "one later run stands for several missed ones",
    SkipReason.DEPENDENCY: "a job it depends on did not succeed",
    SkipReason.MAX_RUNS: "the job has had all its runs",
    SkipReason.EDITED: "the schedule was changed before it ran",
    SkipReason.CANCELLED: "the job was cancelled",
    SkipReason.SKIPPED: "somebody skipped it",
}

WAIT_WORDS: Mapping[WaitReason, str] = {
    WaitReason.RETRY: "waits for its next try",
    WaitReason.DEPENDENCY: "waits for a job it depends on",
    WaitReason.OVERLAP: "waits for earlier runs to end",
    WaitReason.UNKNOWN_TASK: "waits for a worker that knows its task",
    WaitReason.BREAKER: "waits for its target to recover",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    job_id: JobId
    fires: int
    skips: int
    next_run_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    job_id: JobId
    scheduled_for: datetime
    reason: SkipReason
    count: int = 1
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    job_id: JobId
    execution_id: ExecutionId
    attempt: int
    lateness: timedelta  # since available_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An attempt ended; `state` is what became of its execution."""

    job_id: JobId
    execution_id: ExecutionId
    attempt: int
    outcome: str
    state: ExecutionState
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseLost:
    job_id: JobId
    execution_id: ExecutionId
    attempt: int
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanged:
    job_id: JobId
    action: str  # create, update, pause, …
    by: str | None = None


DomainEvent = Planned | Skipped | Started | Ended | LeaseLost | JobChanged
