"""Instances, workers and engines on the wire; what the API and the CLI share."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from noonday.api.answers import Shape
from noonday.api.schedules import instant_text
from noonday.api.shapes import LeaderShape
from noonday.control.engines import Comparison, Move
from noonday.control.instances import Peer, Roster, Workers
from noonday.control.system import Summary
from noonday.domain.execution import Road
from noonday.domain.job import JobState, Lane
from noonday.ports import Leader
from noonday.store.engine_versions import Figures, Lateness

__all__ = [
    "EnginesShape",
    "MoveShape",
    "PeersShape",
    "RosterShape",
    "SummaryShape",
    "WorkersShape",
    "comparison_json",
    "leader_json",
    "move_json",
    "peer_json",
    "peers_json",
    "roster_json",
    "summary_json",
    "workers_json",
]

Json = dict[str, Any]


class PeerShape(Shape):
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


class PeersShape(Shape):
    instances: list[PeerShape]


class RosterShape(PeersShape):
    leader: LeaderShape | None


class WorkersShape(Shape):
    total: int
    active: int
    idle: int
    draining: int
    workers: list[PeerShape]
    queue_size: int


class LatenessShape(Shape):
    p50_ms: int
    p95_ms: int
    p99_ms: int
    max_ms: int


class EngineShape(Shape):
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
    lateness: LatenessShape | None


class EnginesShape(Shape):
    hours: float
    engines: list[EngineShape]
    finished_at: datetime | None
    verdict: str


class MoveShape(Shape):
    to: int
    count: int
    jobs: list[str]
    dry_run: bool


class RunsShape(Shape):
    total: int
    completed: int
    failed: int
    skipped: int
    cancelled: int
    running: int
    waiting: int
    average_duration_ms: int | None
    success_rate: float | None


class SummaryShape(Shape):
    instance_id: str
    jobs: dict[str, int]
    executions: RunsShape
    queue_depth: int
    queue_depth_by_priority: dict[str, int]
    engines: list[EngineShape]
    since: datetime
    last_check_at: datetime | None
    last_metrics_update: datetime


def leader_json(leader: Leader | None) -> Json | None:
    return None if leader is None else {"id": leader.holder, "term": leader.term}


def peer_json(peer: Peer) -> Json:
    own = peer.instance
    return {
        "id": own.id,
        "host": own.host,
        "pid": own.pid,
        "roles": list(own.roles),
        "state": peer.state,
        "is_leader": peer.leads,
        "road": own.road,
        "slots": own.slots,
        "busy": own.busy,
        "url": own.url or None,
        "started_at": instant_text(own.started_at),
        "heartbeat_at": instant_text(own.heartbeat_at),
        "heartbeat_age_seconds": round(peer.silent_for.total_seconds(), 3),
        "version": own.version,
    }


def peers_json(peers: tuple[Peer, ...]) -> Json:
    return {"instances": [peer_json(peer) for peer in peers]}


def roster_json(roster: Roster) -> Json:
    return peers_json(roster.peers) | {"leader": leader_json(roster.leader)}


def workers_json(workers: Workers) -> Json:
    return {
        "total": workers.total,
        "active": workers.active,
        "idle": workers.idle,
        "draining": workers.draining,
        "workers": [peer_json(peer) for peer in workers.peers],
        "queue_size": sum(workers.queue.values()),
    }


def comparison_json(found: Comparison) -> Json:
    return {
        "hours": found.hours,
        "engines": _engines(found.engines),
        "finished_at": instant_text(found.finished_at),
        "verdict": found.verdict,
    }


def move_json(moved: Move) -> Json:
    return {
        "to": moved.to.value,
        "count": moved.count,
        "jobs": list(moved.names),
        "dry_run": moved.dry_run,
    }


def summary_json(found: Summary) -> Json:
    return {
        "instance_id": found.local.instance_id,
        "jobs": {state.value: found.jobs.get(state, 0) for state in JobState},
        "executions": _runs(found.engines),
        "queue_depth": sum(found.queue.values()),
        "queue_depth_by_priority": {lane.name.lower(): found.queue.get(lane, 0) for lane in Lane},
        "engines": _engines(found.engines),
        "since": instant_text(found.since),
        "last_check_at": instant_text(found.local.last_check_at),
        "last_metrics_update": instant_text(found.at),
    }


def _engines(engines: Mapping[Road, Figures]) -> list[Json]:
    return [_engine(road, figures) for road, figures in sorted(engines.items())]


def _engine(road: Road, figures: Figures) -> Json:
    names = ("jobs", "armed", "running", "waiting", "completed", "failed", "skipped", "cancelled")
    rate = figures.failure_rate
    return {
        "scheduler_version": road.value,
        "road": road.name.lower(),
        **{name: getattr(figures, name) for name in names},
        "failure_rate": None if rate is None else round(rate, 6),
        "average_duration_ms": _millis(figures.took),
        "lateness": _lateness(figures.lateness),
    }


def _lateness(found: Lateness | None) -> Json | None:
    if found is None:
        return None
    return {f"{name}_ms": _millis(getattr(found, name)) for name in ("p50", "p95", "p99", "max")}


def _runs(engines: Mapping[Road, Figures]) -> Json:
    both = list(engines.values())
    names = ("completed", "failed", "skipped", "cancelled", "running", "waiting")
    sums = {name: sum(getattr(figures, name) for figures in both) for name in names}
    ended = sums["completed"] + sums["failed"]
    spent = sum((figures.took * figures.ended for figures in both if figures.took), timedelta())
    return {
        "total": ended + sums["cancelled"] + sums["running"],
        **sums,
        "average_duration_ms": _millis(spent / ended) if ended else None,
        "success_rate": round(sums["completed"] / ended, 6) if ended else None,
    }


def _millis(span: timedelta | None) -> int | None:
    return None if span is None else round(span.total_seconds() * 1000)
