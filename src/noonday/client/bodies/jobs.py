"""What is sent: jobs. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal, Required, TypedDict

from noonday.client.values import BulkAction, CatchUp, IntervalUnit, OnLost, Outside, Overlap

__all__ = [
    "BulkBody",
    "CalendarBody",
    "CommandBody",
    "FetchBody",
    "HttpBody",
    "JobBody",
    "PauseBody",
    "PythonBody",
    "ResumeBody",
    "RunBody",
    "ServiceBody",
    "TimeConfigBody",
    "WindowBody",
]


class BulkBody(TypedDict, total=False):
    """What to do with which jobs: those that a search finds, those named, or all."""

    action: Required[BulkAction]
    filter: str | None
    jobs: list[str] | None
    all: bool
    dry_run: bool
    expect: int | None


class CalendarBody(TypedDict, total=False):
    excluded_dates: list[str | date]
    holidays: str | None


class CommandBody(TypedDict, total=False):
    type: Required[Literal["command"]]
    argv: Required[list[str]]
    env: dict[str, str]
    cwd: str | None
    stdin: str | None
    cpu_seconds: int | None
    memory_mb: int | None


class FetchBody(TypedDict, total=False):
    type: Required[Literal["fetch"]]
    url: Required[str]
    headers: dict[str, str]


class HttpBody(TypedDict, total=False):
    type: Required[Literal["http"]]
    url: Required[str]
    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]
    headers: dict[str, str]
    body: Any
    expected_status: list[int]
    heartbeat_seconds: int


class JobBody(TypedDict, total=False):
    """A job as people define it; every field is optional, a job needs a `target` or a `url`."""

    schedule_type: Literal["cron", "interval", "calendar", "immediate", "once", "event", "manual"] | None
    cron_expression: str | None
    schedule_time: str | None
    interval_minutes: int | None
    interval_type: IntervalUnit | None
    after_completion: bool | None
    frequency: Literal["hourly", "daily", "weekly", "monthly", "cron"] | None
    time_config: TimeConfigBody | None
    run_at: str | datetime | None
    timezone: str | None
    start_at: str | datetime | None
    end_at: str | datetime | None
    max_runs: int | None
    jitter_seconds: float | None
    windows: list[WindowBody] | None
    calendar: CalendarBody | None
    outside: Outside | None
    trigger_webhook: str | None
    trigger_channel: str | None
    name: str | None
    description: str | None
    tags: list[str] | None
    source_id: str | None
    url: str | None
    target: HttpBody | ServiceBody | FetchBody | PythonBody | CommandBody | None
    config: dict[str, Any] | None
    metadata: dict[str, Any] | None
    priority: int | None
    timeout_seconds: float | None
    max_retries: int | None
    retry_backoff_seconds: float | None
    retry_jitter: bool | None
    on_lost: OnLost | None
    misfire_grace_seconds: float | None
    coalesce: bool | None
    catch_up: CatchUp | None
    max_instances: int | None
    overlap: Overlap | None
    depends_on: list[str] | None
    on_success_of: list[str] | None
    schedule_enabled: bool | None
    retention_runs: int | None
    retention_days: int | None
    scheduler_version: int | None


class PythonBody(TypedDict, total=False):
    type: Required[Literal["python"]]
    task: Required[str]
    args: list[Any]
    kwargs: dict[str, Any]


class ServiceBody(TypedDict, total=False):
    type: Required[Literal["service"]]
    service: Required[str]
    endpoint: Required[str]
    headers: dict[str, str]
    heartbeat_seconds: int


class TimeConfigBody(TypedDict, total=False):
    minute: int | None
    hour: int | None
    day: str | int | None
    day_of_month: int | None
    cron: str | None
    cron_expression: str | None
    expression: str | None


class WindowBody(TypedDict, total=False):
    days: list[Any] | str
    start: Required[str]
    end: Required[str]


class PauseBody(TypedDict, total=False):
    until: str | datetime | None


class ResumeBody(TypedDict, total=False):
    catch_up: bool


class RunBody(TypedDict, total=False):
    """What a forced run may change."""

    config: dict[str, Any] | None
