"""What comes back: executions. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from noonday.client.values import Cause, ExecutionState, SkipReason, WaitReason

__all__ = ["Attempt", "Execution", "ExecutionDetail", "ExecutionPage", "Output", "OutputPiece"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
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
    number: int
    outcome: str
    started_at: datetime | None
    completed_at: datetime
    duration_ms: int | None
    instance_id: str | None
    error_message: str | None
    stack_trace: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One occurrence of a job: a run, or one or more due times that were skipped."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionDetail:
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
    attempts: list[Attempt]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPage:
    """`next_cursor` leads to the next page; null on the last."""

    executions: list[Execution]
    total: int
    limit: int
    offset: int
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """Read on with `after=next`, at once if there is `more`; nothing comes any more once it has `ended`."""

    execution_id: str
    attempt: int
    newest_attempt: int
    pieces: list[OutputPiece]
    next: int
    more: bool
    ended: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputPiece:
    """`place` and `line` count the characters and the line ends before it, those that were left out too."""

    place: int
    line: int
    at: datetime
    text: str
