"""How jobs fare, of one and of all; and what will run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Depends, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.fields import Instant
from noonday.api.figures import (
    ForecastShape,
    JobStatsShape,
    OverallStatsShape,
    UpcomingShape,
    forecast_json,
    job_stats_json,
    overall_json,
    upcoming_json,
)
from noonday.api.paging import own_service
from noonday.api.routes.jobs import JobRef
from noonday.api.schedules import read_instant
from noonday.api.services import Ask, v2_is_on
from noonday.control.statistics import LONGEST
from noonday.domain.access import Right

router = Router(prefix="/api/v2", tags=["statistics"], dependencies=[Depends(v2_is_on), needs(Right.READ)])

Days = Annotated[
    int | None, Query(ge=1, le=LONGEST, description="the last so many days in UTC, today included")
]


class UpcomingQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: Annotated[int, Field(ge=1, le=1000)] = 10
    until: Instant | None = Field(None, description="none after this")


class ForecastQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    since: Instant | None = Field(None, alias="from", description="now, unless given")
    until: Instant | None = Field(None, alias="to", description="a day later, unless given")
    limit: Annotated[int, Field(ge=1, le=1000)] = 200


@router.get("/jobs/{job}/stats", responses={200: {"model": JobStatsShape}}, summary="How a job fares")
async def job_stats(job: JobRef, ask: Ask, days: Days = None) -> Response:
    return JSONResponse(job_stats_json(await ask.statistics.of_job(job, days)))


@router.get("/stats", responses={200: {"model": OverallStatsShape}}, summary="How all jobs fare")
async def overall_stats(ask: Ask, who: Who, days: Days = 30) -> Response:
    return JSONResponse(overall_json(await ask.statistics.overall(days, own_service(who))))


@router.get("/jobs/{job}/upcoming", responses={200: {"model": UpcomingShape}}, summary="When a job will run")
async def upcoming(job: JobRef, ask: Ask, query: Annotated[UpcomingQuery, Query()]) -> Response:
    coming = await ask.forecasts.of_job(job, query.count, _instant("until", query.until))
    return JSONResponse(await run_in_threadpool(upcoming_json, coming))


@router.get("/forecast", responses={200: {"model": ForecastShape}}, summary="What will run, of all jobs")
async def forecast(ask: Ask, who: Who, query: Annotated[ForecastQuery, Query()]) -> Response:
    since, until = _instant("from", query.since), _instant("to", query.until)
    found = await ask.forecasts.overall(since, until, limit=query.limit, service=own_service(who))
    return JSONResponse(forecast_json(found))


def _instant(field: str, value: datetime | None) -> datetime | None:
    return None if value is None else read_instant(field, value, ZoneInfo("UTC"))
