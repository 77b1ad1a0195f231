"""Runs of many jobs on one line of time, and how full each hour was and will be."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Depends, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.fields import Instant
from noonday.api.paging import own_service
from noonday.api.schedules import read_instant
from noonday.api.services import Ask, v2_is_on
from noonday.api.timelines import LoadShape, TimelineShape, load_json, timeline_json
from noonday.control.timeline import MOST_TRACKS, Grouping, Wanted
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.heat import hour_of
from noonday.store.jobs import JobFilter

router = Router(prefix="/api/v2", tags=["statistics"], dependencies=[Depends(v2_is_on), needs(Right.READ)])


class TimelineQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    since: Instant | None = Field(None, alias="from", description="twelve hours ago, unless given")
    until: Instant | None = Field(None, alias="to", description="a day after the start, unless given")
    q: Annotated[str, Field(max_length=searching.LONGEST, description="a search for jobs")] = ""
    group_by: Grouping = Grouping.NONE
    limit: Annotated[int, Field(ge=1, le=MOST_TRACKS)] = 100
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


class LoadQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    since: Instant | None = Field(None, alias="from", description="seven days ago, unless given")
    until: Instant | None = Field(None, alias="to", description="seven days ahead, unless given")


@router.get(
    "/timeline",
    responses={200: {"model": TimelineShape}},
    summary="Past, running and coming runs, a track for each job",
)
async def timeline(ask: Ask, who: Who, query: Annotated[TimelineQuery, Query()]) -> Response:
    now = ask.clock.now()
    since = _instant("from", query.since) or now - timedelta(hours=12)
    terms = searching.parse(query.q, search_fields.JOBS, now)
    wanted = Wanted(
        since=since,
        until=_instant("to", query.until) or since + timedelta(days=1),
        filter=JobFilter(terms=terms, service=own_service(who)),
        group=query.group_by,
        limit=query.limit,
        offset=query.offset,
    )
    found = await ask.timelines.look(wanted)
    return JSONResponse(await run_in_threadpool(timeline_json, found, query.limit, query.offset))


@router.get("/load", responses={200: {"model": LoadShape}}, summary="How full each hour was and will be")
async def load(ask: Ask, who: Who, query: Annotated[LoadQuery, Query()]) -> Response:
    now, service = ask.clock.now(), own_service(who)
    since = _instant("from", query.since) or hour_of(now) - timedelta(days=7)
    until = _instant("to", query.until) or hour_of(now) + timedelta(days=7)
    past = await ask.loads.past(min(since, now), min(until, now), service)
    return JSONResponse(load_json(past, await ask.loads.coming(max(until, now), service)))


def _instant(field: str, value: datetime | None) -> datetime | None:
    return None if value is None else read_instant(field, value, ZoneInfo("UTC"))
