"""What comes back: health. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from noonday.client.answers.scheduler import Leader

__all__ = ["Live", "Ready", "SchedulerHealth"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    status: str
    checks: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerHealth:
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
    leader: Leader | None
