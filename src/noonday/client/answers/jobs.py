"""What comes back: jobs. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Literal

from noonday.client.values import Action, JobState

__all__ = [
    "BulkDone",
    "BulkFailure",
    "BulkJob",
    "BulkPreview",
    "CalendarBody",
    "Change",
    "CommandBody",
    "FetchBody",
    "HttpBody",
    "Job",
    "JobPage",
    "NextRuns",
    "PythonBody",
    "Rehearsed",
    "ServiceBody",
    "Started",
    "Window",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkDone:
    """`unchanged` were as wanted already, or ceased to match meanwhile."""

    dry_run: Literal[False]
    action: Action
    matched: int
    done: int
    unchanged: int
    failed: list[BulkFailure]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkFailure:
    """`job_id` is null where there is no such job."""

    job_id: str | None
    name: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkJob:
    job_id: str
    name: str
    status: JobState
    is_paused: bool
    schedule_enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkPreview:
    """What a bulk action would be done to; of many jobs the oldest hundred are listed."""

    dry_run: Literal[True]
    action: Action
    matched: int
    jobs: list[BulkJob]


@dataclass(frozen=True, slots=True, kw_only=True)
class CalendarBody:
    excluded_dates: list[date] | None
    holidays: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandBody:
    type: Literal["command"]
    argv: list[str]
    env: dict[str, str] | None
    cwd: str | None
    stdin: str | None
    cpu_seconds: int | None
    memory_mb: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchBody:
    type: Literal["fetch"]
    url: str
    headers: dict[str, str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpBody:
    type: Literal["http"]
    url: str
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] | None
    headers: dict[str, str] | None
    body: Any
    expected_status: list[int] | None
    heartbeat_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A job: the fields of its body, then what the scheduler keeps of it. Secrets are shown as ********."""

    id: str
    name: str
    description: str
    tags: list[str]
    source_id: str | None
    url: str | None
    target: HttpBody | ServiceBody | FetchBody | PythonBody | CommandBody
    schedule_type: str
    cron_expression: str | None
    interval_minutes: int | None
    interval_type: str | None
    after_completion: bool | None
    frequency: str | None
    time_config: dict[str, Any] | None
    run_at: datetime | None
    timezone: str
    start_at: datetime | None
    end_at: datetime | None
    max_runs: int | None
    jitter_seconds: float
    windows: list[Window]
    calendar: CalendarBody
    outside: str
    trigger_webhook: str | None
    trigger_channel: str | None
    config: dict[str, Any]
    metadata: dict[str, Any]
    priority: int
    timeout_seconds: float
    max_retries: int
    retry_backoff_seconds: float
    retry_jitter: bool
    on_lost: str
    misfire_grace_seconds: float
    coalesce: bool
    catch_up: str
    max_instances: int
    overlap: str
    depends_on: list[str]
    on_success_of: list[str]
    schedule_enabled: bool
    retention_runs: int | None
    retention_days: int | None
    scheduler_version: int
    status: JobState
    is_paused: bool
    paused_until: datetime | None
    next_run_at: datetime | None
    next_runs: list[datetime]
    schedule_words: str
    last_run_at: datetime | None
    last_status: str | None
    fire_count: int
    current_retry_count: int
    created_at: datetime
    updated_at: datetime
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonBody:
    type: Literal["python"]
    task: str
    args: list[Any] | None
    kwargs: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceBody:
    type: Literal["service"]
    service: str
    endpoint: str
    headers: dict[str, str] | None
    heartbeat_seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    days: list[str]
    start: str
    end: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPage:
    """`next_cursor` leads to the next page; null on the last."""

    jobs: list[Job]
    total: int
    limit: int
    offset: int
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NextRuns:
    before: list[datetime]
    after: list[datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """`job` is as it would be, null once it is deleted. A changed secret is named, not shown."""

    dry_run: Literal[True]
    job: Job | None
    changes: list[Change]
    next_runs: NextRuns


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    message: str
    job_id: str
    execution_id: str
