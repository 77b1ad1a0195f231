"""`/api/admin/schedulers`: recurring jobs as schedulers that start, stop and fail."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import JSONResponse

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.dialects.admin import (
    ActionAnswer,
    ActionBody,
    SchedulerPage,
    SchedulersHealth,
    acted_view,
    fleet_view,
    scheduler_view,
)
from noonday.api.paging import Counting, Limit
from noonday.api.services import Ask
from noonday.domain.access import Right
from noonday.domain.errors import NotAllowed
from noonday.domain.schedulers import Action

router = Router(prefix="/api/admin/schedulers", tags=["admin"])


class SchedulersQuery(Counting):
    limit: Limit = 200


@router.get(
    "/health",
    dependencies=[needs(Right.READ)],
    responses={
        200: {"model": SchedulersHealth},
        503: {"model": SchedulersHealth, "description": "a critical scheduler is in error or stopped"},
    },
    summary="How all recurring jobs fare",
)
async def health(ask: Ask, who: Who) -> Response:
    fleet = await ask.schedulers.fleet(who.service)
    return JSONResponse(fleet_view(fleet, ask.clock.now()), 200 if fleet.healthy else 503)


@router.get(
    "",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": SchedulerPage}},
    summary="List recurring jobs, by name",
)
async def find(query: Annotated[SchedulersQuery, Query()], ask: Ask, who: Who) -> Response:
    page = await ask.schedulers.page(limit=query.limit, offset=query.offset, service=who.service)
    shown = [scheduler_view(row) for row in page.items]
    return JSONResponse({"schedulers": shown, **page.bounds})


@router.post(
    "",
    dependencies=[needs(Right.RUN)],
    responses={200: {"model": ActionAnswer}, 404: {"description": "there is no such scheduler"}},
    summary="Start, stop, pause, resume, restart or trigger one",
)
async def act(body: ActionBody, ask: Ask, who: Who) -> Response:
    if body.action is not Action.TRIGGER and not who.may(Right.OPERATE):
        raise NotAllowed(f"{who.name} has the role {who.role}, which may not {body.action} a scheduler")
    if who.confined:
        await ask.owners.confine(who, job=body.scheduler_id)
    return JSONResponse(acted_view(await ask.schedulers.act(body.scheduler_id, body.action, who.name)))
