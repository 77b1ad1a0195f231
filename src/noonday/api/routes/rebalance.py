"""How evenly the load is spread over the day, and spreading it better."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Response
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask, v2_is_on
from noonday.api.spreading import (
    DistributionShape,
    RebalanceBody,
    RebalanceShape,
    WishBody,
    distribution_json,
    done_json,
    suggestion_json,
)
from noonday.domain.access import Right

router = Router(prefix="/api/v2/scheduler", tags=["scheduler"], dependencies=[Depends(v2_is_on)])

SlotMinutes = Annotated[int, Query(ge=5, le=60, description="5, 10, 15, 20, 30 or 60")]


@router.get(
    "/distribution",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": DistributionShape}},
    summary="How many runs start when, over the coming day",
)
async def distribution(ask: Ask, who: Who, slot_minutes: SlotMinutes = 15) -> Response:
    found = await ask.rebalancing.distribution(slot_minutes, own_service(who))
    return JSONResponse(distribution_json(found))


@router.post(
    "/rebalance/preview",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": RebalanceShape}},
    summary="Which jobs would be moved to spread the load; nothing is",
)
async def preview_rebalance(ask: Ask, body: WishBody | None = None) -> Response:
    found = await ask.rebalancing.preview((body or WishBody()).wish())
    return JSONResponse(await run_in_threadpool(suggestion_json, found))


@router.post(
    "/rebalance",
    dependencies=[needs(Right.MANAGE)],
    responses={200: {"model": RebalanceShape}},
    summary="Move jobs within their rhythm, so that the load is spread",
)
async def rebalance(ask: Ask, who: Who, body: RebalanceBody | None = None) -> Response:
    wanted = body or RebalanceBody()
    if wanted.dry_run:
        found = await ask.rebalancing.preview(wanted.wish())
        return JSONResponse(await run_in_threadpool(suggestion_json, found))
    done = await ask.rebalancing.apply(wanted.wish(), who.name)
    return JSONResponse(await run_in_threadpool(done_json, done))
