"""A job: the definition of what runs, when, and how it is treated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum
from typing import Any, NewType

from noonday.domain.schedule import Timing
from noonday.domain.target import Target

JobId = NewType("JobId", str)  # a UUID in its 36-character form


class JobState(StrEnum):
    PENDING = "pending"
    SCHEDULED = "scheduled"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Lane(IntEnum):
    """The priority on the wire: 1 high, 2 normal, 3 low."""

    HIGH = 1
    NORMAL = 2
    LOW = 3


class CatchUp(StrEnum):
    """What becomes of due times missed by more than the grace."""

    NONE = "none"
    LATEST = "latest"
    ALL = "all"


class Overlap(StrEnum):
    """What a due run does while the runs before it are still going."""

    SKIP = "skip"
    QUEUE = "queue"  # all wait their turn
    QUEUE_ONE = "queue_one"  # one waits, further ones are skipped
    REPLACE = "replace"  # the running one is cancelled
    ALLOW = "allow"


class OnLost(StrEnum):
    RERUN = "rerun"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class MisfirePolicy:
    grace: timedelta = timedelta(seconds=300)
    coalesce: bool = True
    catch_up: CatchUp = CatchUp.NONE


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapPolicy:
    max_instances: int = 1
    overlap: Overlap = Overlap.SKIP


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    max_retries: int = 3
    backoff: timedelta = timedelta(seconds=60)
    jitter: bool = False
    on_lost: OnLost = OnLost.RERUN


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Outside causes that start a job beside its schedule."""

    webhook: str | None = None
    channel: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much history a job keeps; None = the instance's setting."""

    runs: int | None = None
    days: int | None = None


@dataclass(frozen=True, kw_only=True)
class Job:
    id: JobId
    name: str  # unique
    timing: Timing
    target: Target
    description: str = ""
    tags: tuple[str, ...] = ()
    source_id: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    lane: Lane = Lane.NORMAL
    timeout: timedelta = timedelta(seconds=3600)
    misfire: MisfirePolicy = MisfirePolicy()
    overlapping: OverlapPolicy = OverlapPolicy()
    retry: RetryPolicy = RetryPolicy()
    trigger: Trigger = Trigger()
    retention: Retention = Retention()
    depends_on: tuple[JobId, ...] = ()
    on_success_of: tuple[JobId, ...] = ()
    scheduler_version: int = 1
    # what the scheduler itself keeps of the job
    state: JobState = JobState.PENDING
    enabled: bool = True
    paused: bool = False
    paused_until: datetime | None = None  # a pause that ends by itself
    skipped_through: datetime | None = None  # people let nothing of the schedule fire until after it
    next_run_at: datetime | None = None  # the next instant not yet planned, always one that will fire
    last_run_at: datetime | None = None
    last_status: str | None = None
    fire_count: int = 0  # fires planned so far, counted against max_runs
    retry_count: int = 0  # failures of the execution in progress
    created_at: datetime
    updated_at: datetime
    revision: int = 1  # grows with each change; the ETag

    @classmethod
    def of(cls, fields: dict[str, Any]) -> Job:
        """Of fields by their names; those left out have their defaults. The constructor sets them one by
        one."""
        made = object.__new__(cls)
        object.__setattr__(made, "__dict__", fields)
        return made

    def altered(self, **fields: Any) -> Job:
        """As `replace`, in a tenth of the time."""
        return Job.of({**self.__dict__, **fields})

    @property
    def armed(self) -> bool:
        """May the planner fire it?"""
        return self.enabled and not self.paused and self.state is not JobState.CANCELLED
