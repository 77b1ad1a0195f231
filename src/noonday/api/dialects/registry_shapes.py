"""What the registry answers, as OpenAPI shows it; the answers themselves are made in `registry_views`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from noonday.api.answers import Shape
from noonday.domain.execution import Cause, ExecutionState


class CamelShape(Shape):
    model_config = ConfigDict(alias_generator=to_camel)


class RegisteredJob(CamelShape):
    """A job as services know it. Secrets are shown as ********."""

    id: str
    name: str
    display_name: str
    description: str
    cron_expression: str | None
    schedule_words: str
    timezone: str
    enabled: bool
    paused: bool
    status: str
    job_type: str | None
    service: str | None
    endpoint: str | None
    config: dict[str, Any]
    metadata: dict[str, Any]
    critical: bool
    tags: list[str]
    priority: int
    timeout_seconds: float
    max_retries: int
    last_run_at: datetime | None
    last_status: str | None
    next_run_at: datetime | None
    total_runs: int
    successful_runs: int
    failed_runs: int
    created_at: datetime
    updated_at: datetime


class Pagination(CamelShape):
    limit: int
    offset: int
    total: int
    has_more: bool


class RegisteredJobs(CamelShape):
    jobs: list[RegisteredJob]
    total: int
    pagination: Pagination


class KeptField(CamelShape):
    """A field in which the job does not follow the declaration, and why."""

    field: str
    declared: Any
    kept: Any
    reason: str


class Registration(CamelShape):
    success: bool
    message: str
    created: bool
    replaced: bool
    changed: list[str]
    kept: list[KeptField]
    job: RegisteredJob


class RegistrationOfOne(CamelShape):
    name: str
    created: bool
    replaced: bool
    changed: list[str]
    kept: list[KeptField]


class RegistrationOfAll(CamelShape):
    success: bool
    message: str
    service: str
    jobs: list[RegistrationOfOne]
    disabled: list[str]


class Done(CamelShape):
    success: bool
    message: str


class DoneWithJob(Done):
    job: RegisteredJob


class Triggered(Done):
    job_name: str
    execution_id: str


class RegistryExecution(CamelShape):
    """One run; `result` is what the service answered, in full."""

    id: str
    job_name: str
    status: ExecutionState
    scheduled_for: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None
    items_processed: int | None
    items_succeeded: int | None
    items_failed: int | None
    error_message: str | None
    metadata: dict[str, Any]
    triggered_by: str
    triggered_by_user: str | None
    cause: Cause
    attempt: int
    reason: str | None
    result: dict[str, Any] | None


class RegistryHistory(CamelShape):
    executions: list[RegistryExecution]
    pagination: Pagination


class RegistryDay(CamelShape):
    date: str
    total_runs: int
    successful_runs: int
    failed_runs: int
    average_duration_ms: int | None


class RegistryStats(CamelShape):
    job_name: str
    days: int | None
    total_runs: int
    successful_runs: int
    failed_runs: int
    cancelled_runs: int
    skipped_runs: int
    success_rate: float | None
    average_duration_ms: int | None
    p50_duration_ms: int | None
    p95_duration_ms: int | None
    p99_duration_ms: int | None
    last_run_at: datetime | None
    last_status: str | None
    next_run_at: datetime | None
    by_day: list[RegistryDay]
