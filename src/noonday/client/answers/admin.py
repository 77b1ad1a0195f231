"""What comes back: admin. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from noonday.client.values import SchedulerState

__all__ = [
    "ActionAnswer",
    "Scheduler",
    "SchedulerDetail",
    "SchedulerFigures",
    "SchedulerPage",
    "SchedulersHealth",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionAnswer:
    success: bool
    message: str
    scheduler: Scheduler
    executionId: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduler:
    id: str
    name: str
    description: str
    status: SchedulerState
    healthy: bool
    critical: bool
    autoStart: bool
    lastRun: datetime | None
    lastSuccess: datetime | None
    lastStatus: str | None
    nextRun: datetime | None
    jobId: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerDetail:
    status: SchedulerState
    healthy: bool
    lastSuccess: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFigures:
    total: int
    running: int
    errors: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerPage:
    schedulers: list[Scheduler]
    total: int
    limit: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulersHealth:
    """`details` are by the name of the scheduler; of very many only the worst, and `truncated` says so."""

    healthy: bool
    status: str
    timestamp: datetime
    schedulers: SchedulerFigures
    details: dict[str, SchedulerDetail]
    truncated: bool
