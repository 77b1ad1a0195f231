"""What the API answers, as OpenAPI shows it; the answers themselves are made in `schemas`."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from noonday.api.answers import Shape
from noonday.api.bodies import CalendarBody, TargetBody
from noonday.domain.execution import Cause, ExecutionState, SkipReason, WaitReason
from noonday.domain.job import JobState


class WindowShape(Shape):
    days: list[str]
    start: str
    end: str


class JobShape(Shape):
    """A job: the fields of its body, then what the scheduler keeps of it. Secrets are shown as ********."""

    id: str
    name: str
    description: str
    tags: list[str]
    source_id: str | None
    url: str | None
    target: TargetBody
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
    windows: list[WindowShape]
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


class JobPage(Shape):
    """`next_cursor` leads to the next page; null on the last."""

    jobs: list[JobShape]
    total: int
    limit: int
    offset: int
    next_cursor: str | None


class ResultShape(Shape):
    items_crawled: int | None
    items_indexed: int | None
    items_processed: int | None
    items_succeeded: int | None
    items_failed: int | None
    status_code: int | None
    bytes_received: int | None
    exit_code: int | None
    output_tail: str | None
    value: Any
    metadata: dict[str, Any]
    cpu_time_ms: int | None
    memory_peak_mb: float | None


class AttemptShape(ResultShape):
    number: int
    outcome: str
    started_at: datetime | None
    completed_at: datetime
    duration_ms: int | None
    instance_id: str | None
    error_message: str | None
    stack_trace: str | None


class ExecutionShape(ResultShape):
    """One occurrence of a job: a run, or one or more due times that were skipped."""

    id: str
    job_id: str
    execution_number: int
    status: ExecutionState
    scheduled_for: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None
    error_message: str | None
    stack_trace: str | None
    retry_attempt: int
    cause: Cause
    triggered_by: str
    triggered_by_user: str | None
    config: dict[str, Any] | None
    attempt: int
    losses: int
    available_at: datetime | None
    lateness_ms: int | None
    covers_from: datetime | None
    through_at: datetime | None
    skipped_count: int
    skip_reason: SkipReason | None
    wait_reason: WaitReason | None
    reason: str | None
    detail: str | None
    progress: float | None
    progress_message: str | None
    remote: bool
    cancel_requested_at: datetime | None
    cancel_requested_by: str | None
    instance_id: str | None
    priority: int
    trace_id: str | None
    created_at: datetime


class ExecutionDetail(ExecutionShape):
    attempts: list[AttemptShape]


class OutputPiece(Shape):
    """`place` and `line` count the characters and the line ends before it, those that were left out too."""

    place: int
    line: int
    at: datetime
    text: str


class OutputShape(Shape):
    """Read on with `after=next`, at once if there is `more`; nothing comes any more once it has `ended`."""

    execution_id: str
    attempt: int
    newest_attempt: int
    pieces: list[OutputPiece]
    next: int
    more: bool
    ended: bool


class ExecutionPage(Shape):
    """`next_cursor` leads to the next page; null on the last."""

    executions: list[ExecutionShape]
    total: int
    limit: int
    offset: int
    next_cursor: str | None


class Started(Shape):
    message: str
    job_id: str
    execution_id: str


class CallbackAnswer(Shape):
    cancel_requested: bool


class PreviewShape(Shape):
    schedule_type: str
    schedule_words: str
    timezone: str
    next_runs: list[datetime]
    next_runs_local: list[str]


class Live(Shape):
    status: str


class Ready(Shape):
    status: str
    checks: dict[str, str]


class LeaderShape(Shape):
    id: str
    term: int


class SchedulerHealth(Shape):
    status: str
    running: bool
    is_leader: bool
    workers_active: int
    workers_busy: int
    queue_depth: int
    queue_depth_by_priority: dict[str, int]
    cron_jobs_count: int
    last_check_at: datetime | None
    uptime_seconds: int
    circuit_breaker_state: str
    instance_id: str
    version: str
    road: str
    leader: LeaderShape | None


class WrongField(Shape):
    field: str
    pointer: str | None = None
    detail: str
    value: Any = None


class Problem(Shape):
    """RFC 9457, with the text under `error` as well."""

    type: str
    title: str
    status: int
    detail: str
    error: str
    errors: list[WrongField] | None = None
    request_id: str | None = None
