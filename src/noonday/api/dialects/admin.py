"""Recurring jobs as schedulers on the wire: states in capitals, and actions on one of them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import AliasChoices, ConfigDict, Field
from pydantic.alias_generators import to_camel

from noonday.api.answers import Shape
from noonday.api.bodies import Body
from noonday.api.fields import Label
from noonday.api.schedules import instant_text
from noonday.control.schedulers import Acted, Fleet
from noonday.domain.schedulers import Action, SchedulerState
from noonday.store.schedulers import SchedulerRow

__all__ = ["ActionBody", "acted_view", "fleet_view", "scheduler_view"]


class ActionBody(Body):
    action: Annotated[Action, Field(strict=False)]
    scheduler_id: Label = Field(
        validation_alias=AliasChoices("schedulerId", "scheduler", "id", "scheduler_id"),
        description="the name of the job, or its id",
    )


class _Shape(Shape):
    model_config = ConfigDict(alias_generator=to_camel)


class SchedulerShape(_Shape):
    id: str
    name: str
    description: str
    status: SchedulerState
    healthy: bool
    critical: bool
    auto_start: bool
    last_run: datetime | None
    last_success: datetime | None
    last_status: str | None
    next_run: datetime | None
    job_id: str


class SchedulerPage(_Shape):
    schedulers: list[SchedulerShape]
    total: int
    limit: int
    offset: int


class SchedulerFigures(_Shape):
    total: int
    running: int
    errors: int


class SchedulerDetail(_Shape):
    status: SchedulerState
    healthy: bool
    last_success: datetime | None


class SchedulersHealth(_Shape):
    """`details` are by the name of the scheduler; of very many only the worst, and `truncated` says so."""

    healthy: bool
    status: str
    timestamp: datetime
    schedulers: SchedulerFigures
    details: dict[str, SchedulerDetail]
    truncated: bool


class ActionAnswer(_Shape):
    success: bool
    message: str
    scheduler: SchedulerShape
    execution_id: str | None


def fleet_view(fleet: Fleet, now: datetime) -> dict[str, Any]:
    totals = fleet.totals
    healthy = "degraded" if totals.errors else "healthy"
    return {
        "healthy": fleet.healthy,
        "status": healthy if fleet.healthy else "unhealthy",
        "timestamp": instant_text(now),
        "schedulers": {"total": totals.total, "running": totals.running, "errors": totals.errors},
        "details": {row.name: _detail(row) for row in fleet.shown},
        "truncated": fleet.truncated,
    }


def _detail(row: SchedulerRow) -> dict[str, Any]:
    return {
        "status": row.state.value,
        "healthy": row.healthy,
        "lastSuccess": instant_text(row.last_success_at),
    }


def scheduler_view(row: SchedulerRow) -> dict[str, Any]:
    return {
        "id": row.name,
        "name": row.display_name,
        "description": row.description,
        **_detail(row),
        "critical": row.critical,
        "autoStart": row.enabled,
        "lastRun": instant_text(row.last_run_at),
        "lastStatus": row.last_status,
        "nextRun": instant_text(row.next_run_at) if row.state in _FIRING else None,
        "jobId": row.job_id,
    }


_FIRING = (SchedulerState.RUNNING, SchedulerState.ERROR)


def acted_view(acted: Acted) -> dict[str, Any]:
    return {
        "success": True,
        "message": acted.message,
        "scheduler": scheduler_view(acted.scheduler),
        "executionId": acted.execution.id if acted.execution else None,
    }
