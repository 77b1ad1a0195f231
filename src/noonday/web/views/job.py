"""`/ui/jobs/{job}`: one job from every side, each side a page of its own."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Path, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.schemas import job_json
from noonday.api.services import Ask
from noonday.domain.access import Right
from noonday.domain.clock_changes import changes as clock_changes
from noonday.domain.execution import ExecutionState
from noonday.domain.explain import explain
from noonday.domain.job import Job
from noonday.domain.schedule import Cron, Interval
from noonday.store.audit import AuditFilter
from noonday.store.history import ExecutionFilter
from noonday.store.registrations import Kind
from noonday.web import diffs, graphs, trends
from noonday.web.pages import Page, Show
from noonday.web.pauses import offers
from noonday.web.views.runs import CAUSES, why
from noonday.web.words import moment

router = APIRouter(include_in_schema=False)

_PAGE: Final = 50
_ENTRIES: Final = 20
_COMING: Final = 20
TABS: Final = (
    ("", "Overview"),
    ("runs", "Runs"),
    ("schedule", "Schedule"),
    ("configuration", "Configuration"),
    ("dependencies", "Dependencies"),
    ("triggers", "Triggers"),
    ("history", "History"),
)

Ref = Annotated[str, Path(alias="job", max_length=200)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]


def address_of(job: Job, tab: str = "") -> str:
    return f"/ui/jobs/{quote(job.name, safe='')}" + (f"/{tab}" if tab else "")


async def shown(ask: Ask, show: Page, ref: str, tab: str, status: int = 200, **more: Any) -> Response:
    """The page of a tab, in the frame that all of them share."""
    standing = await ask.insights.standing(ref)
    return show.html(
        f"job_{tab or 'overview'}.html",
        status,
        job=standing.job,
        standing=standing,
        words=await asyncio.to_thread(explain, standing.job.timing, standing.job.id),
        home=address_of(standing.job),
        skips=standing.next_at and moment(standing.next_at, show.reader.zone, show.now),
        offers=offers(show.now, show.reader.zone),
        tabs=TABS,
        tab=tab,
        **more,
    )


@router.get("/ui/jobs/{job}", dependencies=[needs(Right.READ)])
async def overview(job: Ref, show: Show, ask: Ask) -> Response:
    standing = await ask.insights.standing(job)
    insight = await ask.insights.look(standing)
    coming = await ask.forecasts.of_job(standing.job.id, 10)
    return await shown(
        ask,
        show,
        standing.job.id,
        "",
        insight=insight,
        figures=insight.statistics,
        trend=trends.trend(insight.statistics.by_day),
        coming=coming,
        why=why,
    )


@router.get("/ui/jobs/{job}/runs", dependencies=[needs(Right.READ)])
async def runs(
    job: Ref, show: Show, ask: Ask, status: ExecutionState | None = None, offset: Offset = 0
) -> Response:
    wanted = ExecutionFilter(status=status)
    found = await ask.executions.find(wanted, job=job, limit=_PAGE, offset=offset)
    reasons = {one.id: why(one) for one in found.items}
    states = [state.value for state in ExecutionState]
    return await shown(
        ask,
        show,
        job,
        "runs",
        found=found,
        chosen=status and status.value,
        states=states,
        why=reasons,
        causes=CAUSES,
    )


@router.get("/ui/jobs/{job}/schedule", dependencies=[needs(Right.READ)])
async def schedule(job: Ref, show: Show, ask: Ask) -> Response:
    coming = await ask.forecasts.of_job(job, _COMING)
    timing = coming.job.timing
    notes = await asyncio.to_thread(
        clock_changes,
        ZoneInfo(timing.timezone),
        [show.now, *coming.times],
        elapsed=isinstance(timing.schedule, Interval),
    )
    written = timing.schedule.expression if isinstance(timing.schedule, Cron) else None
    return await shown(ask, show, job, "schedule", coming=coming, notes=notes, written=written)


@router.get("/ui/jobs/{job}/configuration", dependencies=[needs(Right.READ)])
async def configuration(job: Ref, show: Show, ask: Ask) -> Response:
    found = await ask.jobs.get(job)
    wire = await asyncio.to_thread(job_json, found, show.now)
    return await shown(
        ask,
        show,
        job,
        "configuration",
        wire=wire,
        target={"type": wire["target"]["type"]}
        | {name: value for name, value in wire["target"].items() if value not in ({}, [], None)},
        pretty=pretty,
    )


@router.get("/ui/jobs/{job}/dependencies", dependencies=[needs(Right.READ)])
async def dependencies(job: Ref, show: Show, ask: Ask, who: Who) -> Response:
    found = await ask.insights.neighbourhood(job, own_service(who))
    return await shown(
        ask,
        show,
        job,
        "dependencies",
        found=found,
        picture=graphs.picture(found) if found.edges else None,
        lines=list(graphs.neighbours_of(found)),
        box=(graphs.WIDE, graphs.TALL),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedTrigger:
    """What the form for a trigger holds, and what is wrong with it."""

    kind: str = Kind.WEBHOOK.value
    pattern: str = ""
    wrong: str = ""


@router.get("/ui/jobs/{job}/triggers", dependencies=[needs(Right.READ)])
async def triggers(job: Ref, show: Show, ask: Ask) -> Response:
    return await triggers_of(ask, show, job, TypedTrigger())


async def triggers_of(ask: Ask, show: Page, job: str, typed: TypedTrigger, status: int = 200) -> Response:
    return await shown(
        ask,
        show,
        job,
        "triggers",
        status,
        server=str(show.request.base_url).rstrip("/"),
        signed=bool(ask.webhook_secrets),
        heard=ask.pubsub_enabled,
        typed=typed,
    )


@router.get("/ui/jobs/{job}/history", dependencies=[needs(Right.READ)])
async def history(job: Ref, show: Show, ask: Ask, offset: Offset = 0) -> Response:
    subject = await ask.audit.subject(job)
    wanted = AuditFilter(kind="job", subject_id=subject)
    found = await ask.audit.find(wanted, limit=_ENTRIES, offset=offset)
    return await shown(ask, show, job, "history", found=found, changes=diffs.changes_of)


def pretty(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, default=str)
