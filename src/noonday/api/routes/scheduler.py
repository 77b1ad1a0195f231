"""The scheduler as a whole: its instances and workers, drain and resume, figures, and its two engines."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Response
from fastapi.responses import JSONResponse

from noonday.api.answers import Router
from noonday.api.bodies import DrainBody, FinishBody, MoveBody
from noonday.api.callers import Who, needs
from noonday.api.operating import (
    EnginesShape,
    MoveShape,
    PeersShape,
    RosterShape,
    SummaryShape,
    WorkersShape,
    comparison_json,
    move_json,
    peers_json,
    roster_json,
    summary_json,
    workers_json,
)
from noonday.api.services import Ask, v2_is_on
from noonday.control.engines import Choice
from noonday.domain.access import Right
from noonday.domain.execution import Road

router = Router(prefix="/api/v2/scheduler", tags=["scheduler"], dependencies=[Depends(v2_is_on)])

One = Annotated[str | None, Query(max_length=200, description="the id of one instance")]
Hours = Annotated[float, Query(gt=0, le=24 * 366, description="how far back executions are counted")]


@router.get(
    "/instances",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": RosterShape}},
    summary="Every process and who leads",
)
async def instances(ask: Ask) -> Response:
    return JSONResponse(roster_json(await ask.instances.roster()))


@router.get(
    "/workers",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": WorkersShape}},
    summary="The slots of all living workers",
)
async def workers(ask: Ask) -> Response:
    return JSONResponse(workers_json(await ask.instances.workers()))


@router.get(
    "/metrics",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": SummaryShape}},
    summary="The scheduler in figures",
)
async def metrics(ask: Ask, hours: Hours = 24.0) -> Response:
    return JSONResponse(summary_json(await ask.system.summary(hours)))


@router.post(
    "/drain",
    dependencies=[needs(Right.MANAGE)],
    status_code=202,
    responses={202: {"model": PeersShape}},
    summary="Let workers finish what they run and take nothing new",
)
async def drain(ask: Ask, who: Who, body: DrainBody | None = None, instance: One = None) -> Response:
    return JSONResponse(peers_json(await ask.instances.drain(_one(body, instance), who.name)), 202)


@router.post(
    "/resume",
    dependencies=[needs(Right.MANAGE)],
    status_code=202,
    responses={202: {"model": PeersShape}},
    summary="Let workers take work again",
)
async def resume(ask: Ask, who: Who, body: DrainBody | None = None, instance: One = None) -> Response:
    return JSONResponse(peers_json(await ask.instances.resume(_one(body, instance), who.name)), 202)


@router.get(
    "/engine",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": EnginesShape}},
    summary="Version 1 and 2 side by side",
)
async def engine(ask: Ask, hours: Hours = 24.0) -> Response:
    return JSONResponse(comparison_json(await ask.engines.compare(hours)))


@router.post(
    "/engine/move",
    dependencies=[needs(Right.MANAGE)],
    responses={200: {"model": MoveShape}},
    summary="Move jobs to the other engine",
)
async def move(body: MoveBody, ask: Ask, who: Who) -> Response:
    choice = Choice(all=body.all, jobs=tuple(body.jobs), tag=body.tag)
    return JSONResponse(
        move_json(await ask.engines.move(choice, Road(body.to), who.name, dry_run=body.dry_run))
    )


@router.post(
    "/engine/finish",
    dependencies=[needs(Right.MANAGE)],
    responses={200: {"model": EnginesShape}},
    summary="End the migration, or undo",
)
async def finish(ask: Ask, who: Who, body: FinishBody | None = None) -> Response:
    if body is not None and body.undo:
        await ask.engines.reopen(who.name)
    else:
        await ask.engines.finish(who.name)
    return JSONResponse(comparison_json(await ask.engines.compare()))


def _one(body: DrainBody | None, instance: str | None) -> str | None:
    return instance if body is None or body.instance is None else body.instance
