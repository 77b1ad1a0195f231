"""`/api/v1/scheduler`: figures, how the load is spread, and spreading it better."""

from __future__ import annotations

from fastapi import Response
from fastapi.responses import JSONResponse

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.dialects import v1
from noonday.api.paging import own_service
from noonday.api.routes import rebalance as successor
from noonday.api.routes.rebalance import SlotMinutes
from noonday.api.services import Ask
from noonday.api.spreading import DistributionShape, RebalanceBody, RebalanceShape, WishBody
from noonday.domain.access import Right

router = Router(prefix="/api/v1/scheduler", tags=["v1"], route_class=v1.Route, deprecated=True)


@router.get(
    "/metrics",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": v1.V1Metrics}},
    summary="The scheduler in figures, over all the history that is kept",
)
async def metrics(ask: Ask, who: Who) -> Response:
    found = await ask.statistics.overall(service=own_service(who))
    cleared = await ask.statistics.stale_locks_cleared()
    local = (await ask.system.health()).local
    return JSONResponse(v1.metrics_v1(found, local.last_check_at, cleared))


@router.get(
    "/distribution",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": DistributionShape}},
    summary="How many runs start when, over the coming day",
)
async def distribution(ask: Ask, who: Who, slot_minutes: SlotMinutes = 15) -> Response:
    return await successor.distribution(ask, who, slot_minutes)


@router.post(
    "/rebalance/preview",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": RebalanceShape}},
    summary="Which jobs would be moved to spread the load; nothing is",
)
async def preview_rebalance(ask: Ask, body: WishBody | None = None) -> Response:
    return await successor.preview_rebalance(ask, body)


@router.post(
    "/rebalance",
    dependencies=[needs(Right.MANAGE)],
    responses={200: {"model": RebalanceShape}},
    summary="Move jobs within their rhythm, so that the load is spread",
)
async def rebalance(ask: Ask, who: Who, body: RebalanceBody | None = None) -> Response:
    return await successor.rebalance(ask, who, body)
