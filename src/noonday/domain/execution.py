"""An execution: one occurrence of a job, one row of history, run in one or more attempts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from hashlib import sha256
from typing import Any, NewType

from noonday.domain.job import JobId, Lane
from noonday.domain.outcome import NOTHING, Result

ExecutionId = NewType("ExecutionId", str)  # a UUID in its 36-character form


class ExecutionState(StrEnum):
    PENDING = "pending"  # waits: for its retry, a dependency, an earlier run, a worker that knows the task
    QUEUED = "queued"  # on the road; claimable from available_at on
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"

    @property
    def open(self) -> bool:
        return self in OPEN


_TRACE = re.compile(r"(?!0{32})[0-9a-f]{32}")
OPEN = frozenset({ExecutionState.PENDING, ExecutionState.QUEUED, ExecutionState.RUNNING})


class Road(IntEnum):
    """How an execution gets from the plan to a worker; the number is the job's `scheduler_version`."""

    DATABASE = 1
    STREAMS = 2


class Cause(StrEnum):
    """Why there is an execution; part of the unique slot (job, scheduled_for, cause)."""

    SCHEDULE = "schedule"
    MANUAL = "manual"
    ADMIN = "admin"
    TRIGGER = "trigger"
    UPSTREAM = "upstream"  # on_success_of
    BACKFILL = "backfill"


class SkipReason(StrEnum):
    PAUSED = "paused"
    DISABLED = "disabled"
    WINDOW = "window"
    CALENDAR = "calendar"
    OVERLAP = "overlap"
    MISFIRE = "misfire"
    COALESCED = "coalesced"
    DEPENDENCY = "dependency"
    MAX_RUNS = "max_runs"
    EDITED = "edited"  # was due under a schedule that was changed before it was planned
    CANCELLED = "cancelled"
    SKIPPED = "skipped"  # somebody asked for it


class WaitReason(StrEnum):
    """Why an execution is pending; without available_at it waits for an event, not for a time."""

    RETRY = "retry"
    DEPENDENCY = "dependency"
    OVERLAP = "overlap"
    UNKNOWN_TASK = "unknown_task"
    BREAKER = "breaker"


@dataclass(frozen=True, kw_only=True)  # without slots, for the sake of `of`
class Execution:
    id: ExecutionId
    job_id: JobId
    cause: Cause
    scheduled_for: datetime
    available_at: datetime | None  # not claimable before; None = waits for an event
    state: ExecutionState
    lane: Lane = Lane.NORMAL
    number: int = 0  # 1, 2, 3… per job, in order of planning; skips have 0
    covers_from: datetime | None = None  # start of the interval the run covers
    through_at: datetime | None = None  # of a lapse: the last of the skipped instants
    skipped_count: int = 0  # of a lapse: how many instants
    skip_reason: SkipReason | None = None
    wait_reason: WaitReason | None = None
    detail: str | None = None  # the reason in words
    triggered_by: str | None = None  # user
    config: Mapping[str, Any] | None = None  # what a trigger gave in place of the job's config
    attempt: int = 0  # deliveries so far; the running one has this number
    failures: int = 0  # attempts that failed, counted against max_retries
    losses: int = 0  # attempts whose lease died
    lease_token: str | None = None
    lease_expires_at: datetime | None = None
    deadline_at: datetime | None = None  # the attempt's time-out
    remote: bool = False  # answered 202; lives by heartbeats
    cancel_url: str | None = None
    cancel_requested_at: datetime | None = None
    cancel_requested_by: str | None = None
    instance_id: str | None = None
    claimed_at: datetime | None = None
    started_at: datetime | None = None  # of the newest attempt
    completed_at: datetime | None = None
    progress: float | None = None  # 0..1
    progress_message: str | None = None
    error: str | None = None
    stack: str | None = None
    result: Result = field(default=NOTHING)
    trace_id: str | None = None
    created_at: datetime
    road: Road = Road.DATABASE

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Execution:
        """Of fields by their names; those left out have their defaults. The constructor sets them one by
        one, which takes ten times as long."""
        made = object.__new__(cls)
        object.__setattr__(made, "__dict__", fields)
        return made

    @property
    def admitted(self) -> bool:
        """Was it claimed before? One that an open breaker sent back has no attempt to show for it."""
        return self.attempt > 0 or self.claimed_at is not None

    @property
    def trace(self) -> str:
        """The trace that all its attempts belong to, as W3C writes it: 32 hexadecimal digits."""
        trace = (self.trace_id or self.id).replace("-", "").lower()
        return trace if _TRACE.fullmatch(trace) else sha256(trace.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try of an execution, as kept in the history."""

    execution_id: ExecutionId
    number: int
    outcome: str  # completed, failed, timed_out, cancelled, lost, released, parked
    started_at: datetime | None
    completed_at: datetime
    instance_id: str | None = None
    error: str | None = None
    stack: str | None = None
    result: Result = field(default=NOTHING)


def successful_attempt(execution: Execution) -> Attempt | None:
    """The last attempt of an execution that succeeded: what is known of it is known of the execution."""
    if execution.state is not ExecutionState.COMPLETED or execution.completed_at is None:
        return None
    return Attempt(
        execution_id=execution.id,
        number=execution.attempt,
        outcome="completed",
        started_at=execution.started_at,
        completed_at=execution.completed_at,
        instance_id=execution.instance_id,
        result=execution.result,
    )
