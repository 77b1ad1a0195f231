"""What comes back: registry. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from noonday.client.values import Cause, ExecutionState

__all__ = [
    "Done",
    "DoneWithJob",
    "KeptField",
    "Pagination",
    "RegisteredJob",
    "RegisteredJobs",
    "Registration",
    "RegistrationOfAll",
    "RegistrationOfOne",
    "RegistryDay",
    "RegistryExecution",
    "RegistryHistory",
    "RegistryStats",
    "Triggered",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    success: bool
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DoneWithJob:
    success: bool
    message: str
    job: RegisteredJob


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredJob:
    """A job as services know it. Secrets are shown as ********."""

    id: str
    name: str
    displayName: str
    description: str
    cronExpression: str | None
    scheduleWords: str
    timezone: str
    enabled: bool
    paused: bool
    status: str
    jobType: str | None
    service: str | None
    endpoint: str | None
    config: dict[str, Any]
    metadata: dict[str, Any]
    critical: bool
    tags: list[str]
    priority: int
    timeoutSeconds: float
    maxRetries: int
    lastRunAt: datetime | None
    lastStatus: str | None
    nextRunAt: datetime | None
    totalRuns: int
    successfulRuns: int
    failedRuns: int
    createdAt: datetime
    updatedAt: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptField:
    """A field in which the job does not follow the declaration, and why."""

    field: str
    declared: Any
    kept: Any
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pagination:
    limit: int
    offset: int
    total: int
    hasMore: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredJobs:
    jobs: list[RegisteredJob]
    total: int
    pagination: Pagination


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    success: bool
    message: str
    created: bool
    replaced: bool
    changed: list[str]
    kept: list[KeptField]
    job: RegisteredJob


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationOfAll:
    success: bool
    message: str
    service: str
    jobs: list[RegistrationOfOne]
    disabled: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistrationOfOne:
    name: str
    created: bool
    replaced: bool
    changed: list[str]
    kept: list[KeptField]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryDay:
    date_: str = field(metadata={"wire": "date"})
    totalRuns: int
    successfulRuns: int
    failedRuns: int
    averageDurationMs: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryExecution:
    """One run; `result` is what the service answered, in full."""

    id: str
    jobName: str
    status: ExecutionState
    scheduledFor: datetime
    startedAt: datetime | None
    completedAt: datetime | None
    durationMs: int | None
    itemsProcessed: int | None
    itemsSucceeded: int | None
    itemsFailed: int | None
    errorMessage: str | None
    metadata: dict[str, Any]
    triggeredBy: str
    triggeredByUser: str | None
    cause: Cause
    attempt: int
    reason: str | None
    result: dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryHistory:
    executions: list[RegistryExecution]
    pagination: Pagination


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryStats:
    jobName: str
    days: int | None
    totalRuns: int
    successfulRuns: int
    failedRuns: int
    cancelledRuns: int
    skippedRuns: int
    successRate: float | None
    averageDurationMs: int | None
    p50DurationMs: int | None
    p95DurationMs: int | None
    p99DurationMs: int | None
    lastRunAt: datetime | None
    lastStatus: str | None
    nextRunAt: datetime | None
    byDay: list[RegistryDay]


@dataclass(frozen=True, slots=True, kw_only=True)
class Triggered:
    success: bool
    message: str
    jobName: str
    executionId: str
