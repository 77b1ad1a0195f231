"""What comes back: statistics. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from noonday.client.answers.executions import Execution
from noonday.client.values import JobState

__all__ = ["Counts", "Day", "Durations", "Expected", "Forecast", "JobStats", "OverallStats", "Upcoming"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    total: int
    completed: int
    failed: int
    cancelled: int
    skipped: int
    running: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """What was due on a day in UTC."""

    total: int
    completed: int
    failed: int
    cancelled: int
    skipped: int
    running: int
    waiting: int
    day: str
    success_rate: float | None
    average_duration_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Durations:
    """Milliseconds that completed runs took."""

    average: int
    p50: int
    p95: int
    p99: int
    max: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    job_id: str
    job_name: str
    priority: int
    at: datetime
    expected_duration_ms: int | None
    expected_end_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    from_: datetime = field(metadata={"wire": "from"})
    to: datetime
    runs: list[Expected]
    more: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStats:
    days: int | None
    since: datetime | None
    until: datetime
    partial: bool
    executions: Counts
    success_rate: float | None
    duration_ms: Durations | None
    by_day: list[Day]
    last_execution: Execution | None
    next_run_at: datetime | None
    job_id: str
    job_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OverallStats:
    days: int | None
    since: datetime | None
    until: datetime
    partial: bool
    executions: Counts
    success_rate: float | None
    duration_ms: Durations | None
    by_day: list[Day]
    last_execution: Execution | None
    next_run_at: datetime | None
    jobs: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Upcoming:
    """When a job will fire, jitter aside; nothing while it is paused, disabled or cancelled."""

    job_id: str
    job_name: str
    status: JobState
    schedule_enabled: bool
    timezone: str
    schedule_words: str
    next_runs: list[datetime]
    next_runs_local: list[str]
    more: bool
