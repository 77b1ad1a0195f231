"""Is the process alive, may it be sent requests, and how does the scheduler fare?"""

from __future__ import annotations

from importlib.metadata import version
from typing import Final

from fastapi import Depends, Response
from fastapi.responses import JSONResponse, PlainTextResponse

from noonday.api.answers import Router
from noonday.api.callers import needs, open_to_all
from noonday.api.operating import leader_json
from noonday.api.schedules import instant_text
from noonday.api.services import Ask, v2_is_on
from noonday.api.shapes import Live, Ready, SchedulerHealth
from noonday.domain.access import Right
from noonday.telemetry.metrics import CONTENT_TYPE

router = Router(tags=["health"])

_VERSION: Final = version("noonday")


@router.get(
    "/health/live",
    dependencies=[open_to_all],
    responses={200: {"model": Live}},
    summary="The process answers",
)
async def live() -> Response:
    return JSONResponse({"status": "alive"})


@router.get(
    "/health/ready",
    dependencies=[open_to_all],
    responses={200: {"model": Ready}, 503: {"model": Ready}},
    summary="Requests may be sent here",
)
@router.get(
    "/health",
    dependencies=[open_to_all],
    responses={200: {"model": Ready}, 503: {"model": Ready}},
    summary="As ready, for older checks",
)
async def ready(ask: Ask) -> Response:
    found = await ask.system.ready()
    status = "healthy" if found.ready else "unhealthy"
    return JSONResponse({"status": status, "checks": dict(found.checks)}, 200 if found.ready else 503)


@router.get(
    "/metrics",
    dependencies=[needs(Right.READ)],
    response_class=PlainTextResponse,
    responses={200: {"description": "Prometheus' text format", "content": {CONTENT_TYPE: {}}}},
    summary="Metrics of this instance",
)
async def metrics(ask: Ask) -> Response:
    return Response(await ask.scrape(), media_type=CONTENT_TYPE)


@router.get(
    "/api/v2/scheduler/health",
    dependencies=[Depends(v2_is_on), needs(Right.READ)],
    responses={200: {"model": SchedulerHealth}, 503: {"model": SchedulerHealth}},
    summary="How the scheduler fares",
)
async def scheduler(ask: Ask) -> Response:
    health = await ask.system.health()
    local = health.local
    shown = {
        "status": health.status,
        "running": local.running,
        "is_leader": local.is_leader,
        "workers_active": local.slots,
        "workers_busy": local.busy,
        "queue_depth": sum(health.queue.values()),
        "queue_depth_by_priority": {lane.name.lower(): n for lane, n in health.queue.items()},
        "cron_jobs_count": health.cron_jobs,
        "last_check_at": instant_text(local.last_check_at),
        "uptime_seconds": health.uptime_seconds,
        "circuit_breaker_state": local.circuit_breaker_state,
        "instance_id": local.instance_id,
        "version": _VERSION,
        "road": local.road,
        "leader": leader_json(health.leader),
    }
    return JSONResponse(shown, 503 if health.status == "unhealthy" else 200)
