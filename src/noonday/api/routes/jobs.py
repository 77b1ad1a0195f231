"""`/api/v2/jobs`: create, list, read, change, delete."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated, Any

from fastapi import Body, Depends, Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.bodies import Kind
from noonday.api.callers import Who, needs
from noonday.api.paging import Paging, own_service, paged
from noonday.api.patching import patched
from noonday.api.rehearsing import DryRun, Rehearsed, rehearsed
from noonday.api.schemas import JobBody, apply_body, job_json, to_job
from noonday.api.services import Ask, v2_is_on
from noonday.api.shapes import JobPage, JobShape
from noonday.control.errors import Outdated
from noonday.control.jobs import Edit, Verb
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.job import Job, JobId, JobState, Lane
from noonday.domain.search_values import Is
from noonday.ids import new_id
from noonday.store.jobs import JobFilter

router = Router(prefix="/api/v2/jobs", tags=["jobs"], dependencies=[Depends(v2_is_on)])

JobRef = Annotated[str, Path(alias="job", description="the job's id or its name", max_length=200)]
IfMatch = Annotated[str | None, Header(description="the ETag that was read; 412 if the job has another")]
Patch = Annotated[dict[str, Any], Body(description="the fields that change; null takes away (RFC 7396)")]
_ORDER = r"^-?(created_at|name|next_run_at|last_run_at|updated_at|status|priority)$"
_NEWEST = "-created_at"
_SEARCH = "a search such as `status:failed tag:nightly -tag:old next:<1h`; a plain word is a part of the name"


class ListQuery(Paging):
    status: JobState | None = None
    priority: Annotated[int, Field(ge=1, le=3)] | None = None
    schedule_type: Kind | None = None
    tag: Annotated[str, Field(max_length=64)] | None = None
    name: Annotated[str, Field(max_length=200, description="a part of the name")] | None = None
    q: Annotated[str, Field(max_length=searching.LONGEST, description=_SEARCH)] | None = None
    source_id: Annotated[str, Field(max_length=200)] | None = None
    service: Annotated[str, Field(max_length=200, description="whose jobs")] | None = None
    enabled: bool | None = None
    order: (
        Annotated[str, Field(pattern=_ORDER, description="newest first, unless a cursor says otherwise")]
        | None
    ) = None


@router.post(
    "",
    status_code=201,
    dependencies=[needs(Right.EDIT)],
    responses={
        201: {"model": JobShape},
        200: {"model": Rehearsed, "description": "what would be made, with `dry_run`"},
    },
    summary="Create a job",
)
async def create(body: JobBody, ask: Ask, who: Who, dry_run: DryRun = False) -> Response:
    now = ask.clock.now()
    job = to_job(body, JobId(new_id(now)), now, ask.defaults)
    if dry_run:
        return await rehearsed(ask, partial(ask.jobs.created, job=job, by=who.name))
    made = await ask.jobs.create(job, who.name)
    return answer(made, ask, 201, {"Location": f"/api/v2/jobs/{made.id}"})


@router.get(
    "",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": JobPage}},
    summary="List jobs, newest first",
)
async def find(query: Annotated[ListQuery, Query()], request: Request, ask: Ask, who: Who) -> Response:
    now = ask.clock.now()
    mark = query.mark()
    order = query.order or (mark.order if mark else _NEWEST)
    wanted = _filter(query, who, searching.parse(query.q or "", search_fields.JOBS, now))
    page = await ask.jobs.find(wanted, limit=query.limit, offset=query.offset, order=order, after=mark)
    # Next times are computed: two hundred of them would hold up whatever else this loop does.
    shown = await run_in_threadpool(lambda: [job_json(job, now) for job in page.items])
    return paged(request, "jobs", shown, page)


def _filter(query: ListQuery, who: Who, terms: tuple[searching.Term, ...]) -> JobFilter:
    if query.service is not None:
        whose = searching.Term(field="service", tests=(Is(query.service),))
        terms = (*terms, whose)
    return JobFilter(
        status=query.status,
        priority=None if query.priority is None else Lane(query.priority),
        tag=query.tag,
        name=query.name,
        schedule_type=query.schedule_type,
        source_id=query.source_id,
        enabled=query.enabled,
        service=own_service(who),
        terms=terms,
    )


@router.get(
    "/{job}", dependencies=[needs(Right.READ)], responses={200: {"model": JobShape}}, summary="Read a job"
)
async def read(job: JobRef, ask: Ask) -> Response:
    return answer(await ask.jobs.get(job), ask)


@router.put(
    "/{job}",
    dependencies=[needs(Right.EDIT)],
    responses={200: {"model": JobShape | Rehearsed}},
    summary="Change the fields that are named",
)
async def change(
    job: JobRef, body: JobBody, ask: Ask, who: Who, if_match: IfMatch = None, dry_run: DryRun = False
) -> Response:
    now = ask.clock.now()

    def edit(current: Job) -> Job:
        return apply_body(body, current, now, ask.defaults)

    return await _changed(job, edit, ask, who, if_match, dry_run)


@router.patch(
    "/{job}",
    dependencies=[needs(Right.EDIT)],
    responses={200: {"model": JobShape | Rehearsed}},
    summary="Change the fields that are named, and within objects too",
)
async def patch(
    job: JobRef, body: Patch, ask: Ask, who: Who, if_match: IfMatch = None, dry_run: DryRun = False
) -> Response:
    now = ask.clock.now()

    def edit(current: Job) -> Job:
        return apply_body(patched(body, current), current, now, ask.defaults)

    return await _changed(job, edit, ask, who, if_match, dry_run)


async def _changed(
    job: str, edit: Edit, ask: Ask, who: Who, if_match: str | None, dry_run: bool
) -> JSONResponse:
    verb = partial(ask.jobs.changed, id_or_name=job, edit=edit, by=who.name, revision=revision(if_match))
    return await done(ask, verb, job, dry_run)


@router.delete(
    "/{job}",
    dependencies=[needs(Right.EDIT)],
    status_code=204,
    responses={200: {"model": Rehearsed, "description": "what would be lost, with `dry_run`"}},
    summary="Delete a job and its history",
)
async def delete(
    job: JobRef, ask: Ask, who: Who, if_match: IfMatch = None, dry_run: DryRun = False
) -> Response:
    verb = partial(ask.jobs.removed, id_or_name=job, by=who.name, revision=revision(if_match))
    if dry_run:
        return await rehearsed(ask, verb, job)
    await ask.jobs.do(verb)
    return Response(status_code=204)


async def done(ask: Ask, verb: Verb, job: str, dry_run: bool) -> JSONResponse:
    """The job as a verb left it; or what the verb would do."""
    return await rehearsed(ask, verb, job) if dry_run else answer(await ask.jobs.do(verb), ask)


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
