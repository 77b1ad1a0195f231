"""`/api/v2/jobs`: create, list, read, change, delete."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.concurrency import run_in_threadpool

from noonday.api.bodies import Kind
from noonday.api.callers import Who, needs
from noonday.api.schemas import JobBody, apply_body, job_json, to_job
from noonday.api.services import Ask, v2_is_on
from noonday.api.shapes import JobPage, JobShape
from noonday.control.errors import Outdated
from noonday.domain.access import Right
from noonday.domain.job import Job, JobId, JobState, Lane
from noonday.ids import new_id
from noonday.store.jobs import JobFilter

router = APIRouter(prefix="/api/v2/jobs", tags=["jobs"], dependencies=[Depends(v2_is_on)])

JobRef = Annotated[str, Path(alias="job", description="the job's id or its name", max_length=200)]
IfMatch = Annotated[str | None, Header(description="the ETag that was read; 412 if the job has another")]
_ORDER = r"^-?(created_at|name|next_run_at|last_run_at|updated_at|status|priority)$"


class ListQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: JobState | None = None
    priority: Annotated[int, Field(ge=1, le=3)] | None = None
    schedule_type: Kind | None = None
    tag: Annotated[str, Field(max_length=64)] | None = None
    name: Annotated[str, Field(max_length=200, description="a part of the name")] | None = None
    q: Annotated[str, Field(max_length=200, description="as name")] | None = None
    source_id: Annotated[str, Field(max_length=200)] | None = None
    enabled: bool | None = None
    order: Annotated[str, Field(pattern=_ORDER)] = "-created_at"
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


@router.post(
    "",
    status_code=201,
    dependencies=[needs(Right.EDIT)],
    responses={201: {"model": JobShape}},
    summary="Create a job",
)
async def create(body: JobBody, ask: Ask, who: Who) -> Response:
    now = ask.clock.now()
    job = to_job(body, JobId(new_id(now)), now, ask.defaults)
    made = await ask.jobs.create(job, who.name)
    return answer(made, ask, 201, {"Location": f"/api/v2/jobs/{made.id}"})


@router.get(
    "",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": JobPage}},
    summary="List jobs, newest first",
)
async def find(query: Annotated[ListQuery, Query()], ask: Ask) -> Response:
    wanted = JobFilter(
        status=query.status,
        priority=None if query.priority is None else Lane(query.priority),
        tag=query.tag,
        name=query.name or query.q,
        schedule_type=query.schedule_type,
        source_id=query.source_id,
        enabled=query.enabled,
    )
    page = await ask.jobs.find(wanted, limit=query.limit, offset=query.offset, order=query.order)
    now = ask.clock.now()
    # Next times are computed: two hundred of them would hold up whatever else this loop does.
    shown = await run_in_threadpool(lambda: [job_json(job, now) for job in page.items])
    return JSONResponse({"jobs": shown, "total": page.total, "limit": page.limit, "offset": page.offset})


@router.get(
    "/{job}", dependencies=[needs(Right.READ)], responses={200: {"model": JobShape}}, summary="Read a job"
)
async def read(job: JobRef, ask: Ask) -> Response:
    return answer(await ask.jobs.get(job), ask)


@router.put(
    "/{job}",
    dependencies=[needs(Right.EDIT)],
    responses={200: {"model": JobShape}},
    summary="Change the fields that are named",
)
async def change(job: JobRef, body: JobBody, ask: Ask, who: Who, if_match: IfMatch = None) -> Response:
    now = ask.clock.now()

    def edit(current: Job) -> Job:
        return apply_body(body, current, now, ask.defaults)

    return answer(await ask.jobs.change(job, edit, who.name, revision=revision(if_match)), ask)


@router.delete(
    "/{job}", dependencies=[needs(Right.EDIT)], status_code=204, summary="Delete a job and its history"
)
async def delete(job: JobRef, ask: Ask, who: Who, if_match: IfMatch = None) -> Response:
    await ask.jobs.remove(job, who.name, revision=revision(if_match))
    return Response(status_code=204)


def answer(job: Job, ask: Ask, status: int = 200, headers: dict[str, str] | None = None) -> JSONResponse:
    shown: dict[str, Any] = job_json(job, ask.clock.now())
    return JSONResponse(shown, status, headers={"ETag": f'"{job.revision}"', **(headers or {})})


def revision(if_match: str | None) -> int | None:
    if if_match is None or if_match.strip() == "*":
        return None
    match = re.fullmatch(r'\s*(?:W/)?"(\d{1,18})"\s*', if_match)
    if match is None:
        raise Outdated(f"{if_match[:100]!r} is not the ETag of this job")
    return int(match[1])
