"""What comes back: scheduler. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

__all__ = [
    "Distribution",
    "Engine",
    "Engines",
    "Lateness",
    "Leader",
    "Move",
    "Peer",
    "Peers",
    "Rebalance",
    "Refused",
    "Roster",
    "Runs",
    "Shift",
    "Slot",
    "Summary",
    "Workers",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """Starts in each slot of the coming day. The score is 1 - deviation / mean, at least 0."""

    from_: datetime = field(metadata={"wire": "from"})
    to: datetime
    slot_minutes: int
    jobs: int
    total: float
    mean: float
    deviation: float
    score: float
    peak: Slot
    slots: list[Slot]
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    at: datetime
    starts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    scheduler_version: int
    road: str
    jobs: int
    armed: int
    running: int
    waiting: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    failure_rate: float | None
    average_duration_ms: int | None
    lateness: Lateness | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Lateness:
    p50_ms: int
    p95_ms: int
    p99_ms: int
    max_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Engines:
    hours: float
    engines: list[Engine]
    finished_at: datetime | None
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    id: str
    term: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    to: int
    count: int
    jobs: list[str]
    dry_run: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    id: str
    host: str
    pid: int
    roles: list[str]
    state: str
    is_leader: bool
    road: str
    slots: int
    busy: int
    url: str | None
    started_at: datetime
    heartbeat_at: datetime
    heartbeat_age_seconds: float
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peers:
    instances: list[Peer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """What was moved, or would be; jobs that stay are counted by the reason."""

    dry_run: bool
    score_before: float
    score_after: float
    peak_before: Slot
    peak_after: Slot
    moves: list[Shift]
    refused: list[Refused]
    held: dict[str, int]
    slots_before: list[Slot]
    slots_after: list[Slot]
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    job_id: str
    job_name: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    job_id: str
    job_name: str
    shift_minutes: int
    schedule_before: str
    schedule_after: str
    next_run_before: datetime
    next_run_after: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Roster:
    instances: list[Peer]
    leader: Leader | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    total: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    running: int
    waiting: int
    average_duration_ms: int | None
    success_rate: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    instance_id: str
    jobs: dict[str, int]
    executions: Runs
    queue_depth: int
    queue_depth_by_priority: dict[str, int]
    engines: list[Engine]
    since: datetime
    last_check_at: datetime | None
    last_metrics_update: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Workers:
    total: int
    active: int
    idle: int
    draining: int
    workers: list[Peer]
    queue_size: int
