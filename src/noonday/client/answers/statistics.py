"""What comes back: statistics. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from noonday.client.answers.executions import Execution
from noonday.client.values import JobState

__all__ = [
    "ComingHour",
    "Counts",
    "Day",
    "Durations",
    "Expected",
    "Forecast",
    "JobStats",
    "Load",
    "Mark",
    "OverallStats",
    "PastHour",
    "Timeline",
    "Track",
    "Upcoming",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComingHour:
    at: datetime
    starts: float
    busy_seconds: float


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
class Load:
    """Each hour in which something was due, and each in which something will be."""

    from_: datetime = field(metadata={"wire": "from"})
    to: datetime
    past: list[PastHour]
    planned: list[ComingHour]
    jobs: int
    rough: bool
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PastHour:
    at: datetime
    starts: int
    failed: int
    busy_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A run, or several that begin too close to be told apart: then `count` is above 1 and there is no id."""

    execution_id: str | None
    state: str
    due: datetime
    start: datetime
    end: datetime
    late_seconds: float
    count: int
    row: int


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
class Timeline:
    from_: datetime = field(metadata={"wire": "from"})
    to: datetime
    now: datetime
    tracks: list[Track]
    groups: dict[str, int]
    total: int
    limit: int
    offset: int
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    job_id: str
    job_name: str
    group: str
    runs: dict[str, int]
    late: int
    overlaps: int
    marks: list[Mark]


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
