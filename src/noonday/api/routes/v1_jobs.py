"""`/api/v1/jobs` and `/api/v1/executions`: jobs and their history as the first version knew them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.dialects import v1
from noonday.api.paging import Counting, own_service
from noonday.api.routes.executions import ExecutionRef
from noonday.api.routes.jobs import IfMatch, JobRef, revision
from noonday.api.schemas import JobBody, apply_body, attempt_json, execution_json, to_job
from noonday.api.services import Ask
from noonday.api.shapes import ExecutionDetail
from noonday.api.waiting import WAITED, Prefer, applied, settled
from noonday.domain.access import Right
from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job, JobId, JobState
from noonday.ids import new_id
from noonday.store.jobs import JobFilter

router = Router(prefix="/api/v1", tags=["v1"], route_class=v1.Route, deprecated=True)

_JOB: dict[int | str, dict[str, Any]] = {200: {"model": v1.V1JobShape}}


class V1ListQuery(Counting):
    status: JobState | None = None
    source_id: Annotated[str, Field(max_length=200)] | None = None
    name: Annotated[str, Field(max_length=200, description="a part of the name")] | None = None
    schedule_enabled: bool | None = None


class V1HistoryQuery(Counting):
    status: ExecutionState | None = None


@router.post(
    "/jobs",
    status_code=201,
    dependencies=[needs(Right.EDIT)],
    responses={201: {"model": v1.V1JobShape}},
    summary="Create a job of scheduler version 1",
)
async def create(body: JobBody, ask: Ask, who: Who) -> Response:
    now = ask.clock.now()
    job = to_job(v1.creating(body), JobId(new_id(now)), now, v1.defaults_of(ask.defaults))
    made = await ask.jobs.create(job, who.name)
    return _answer(made, ask, 201, {"Location": f"/api/v1/jobs/{made.id}"})


@router.get(
    "/jobs",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": v1.V1JobPage}},
    summary="List jobs of both versions, newest first",
)
async def find(query: Annotated[V1ListQuery, Query()], ask: Ask, who: Who) -> Response:
    wanted = JobFilter(
        status=query.status,
        name=query.name,
        source_id=query.source_id,
        enabled=query.schedule_enabled,
        service=own_service(who),
    )
    page = await ask.jobs.find(wanted, limit=query.limit, offset=query.offset)
    now = ask.clock.now()
    shown = await run_in_threadpool(lambda: [v1.job_v1(job, now) for job in page.items])
    return JSONResponse({"jobs": shown, **page.bounds})


@router.get("/jobs/{job}", dependencies=[needs(Right.READ)], responses=_JOB, summary="Read a job")
async def read(job: JobRef, ask: Ask) -> Response:
    return _answer(await ask.jobs.get(job), ask)


@router.put(
    "/jobs/{job}",
    dependencies=[needs(Right.EDIT)],
    responses=_JOB,
    summary="Change the fields that are named",
)
async def change(job: JobRef, body: JobBody, ask: Ask, who: Who, if_match: IfMatch = None) -> Response:
    now = ask.clock.now()

    def edit(current: Job) -> Job:
        return apply_body(v1.changing(body, current), current, now, v1.defaults_of(ask.defaults))

    return _answer(await ask.jobs.change(job, edit, who.name, revision=revision(if_match)), ask)


@router.delete(
    "/jobs/{job}", dependencies=[needs(Right.EDIT)], status_code=204, summary="Delete a job and its history"
)
async def delete(job: JobRef, ask: Ask, who: Who, if_match: IfMatch = None) -> Response:
    await ask.jobs.remove(job, who.name, revision=revision(if_match))
    return Response(status_code=204)


@router.post(
    "/jobs/{job}/pause",
    dependencies=[needs(Right.OPERATE)],
    responses=_JOB,
    summary="Let nothing of it fire until resumed",
)
async def pause(job: JobRef, ask: Ask, who: Who) -> Response:
    return _answer(await ask.jobs.pause(job, who.name), ask)


@router.post(
    "/jobs/{job}/resume",
    dependencies=[needs(Right.OPERATE)],
    responses=_JOB,
    summary="Go on with the next future time",
)
async def resume(job: JobRef, ask: Ask, who: Who) -> Response:
    return _answer(await ask.jobs.resume(job, who.name), ask)


@router.post(
    "/jobs/{job}/cancel",
    dependencies=[needs(Right.OPERATE)],
    responses=_JOB,
    summary="End it for good, what runs included",
)
async def cancel(job: JobRef, ask: Ask, who: Who) -> Response:
    return _answer(await ask.jobs.cancel(job, who.name), ask)


@router.post(
    "/jobs/{job}/retry",
    dependencies=[needs(Right.RUN)],
    status_code=202,
    responses={202: {"model": v1.V1Retried}, **WAITED},
    summary="Run again what failed",
)
async def retry(job: JobRef, ask: Ask, who: Who, prefer: Prefer = None) -> Response:
    run = await ask.jobs.retry(job, who.name)
    headers = {"Location": f"/api/v1/executions/{run.id}"}
    ended = await settled(ask, run.id, prefer)
    if ended is not None:
        return JSONResponse(execution_json(ended), headers=headers | applied(prefer))
    found = await ask.jobs.get(run.job_id)
    return JSONResponse(v1.retried_v1(found, run, ask.clock.now()), 202, headers)


@router.get(
    "/jobs/{job}/stats",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": v1.V1Stats}},
    summary="How a job fares",
)
async def stats(job: JobRef, ask: Ask) -> Response:
    return JSONResponse(v1.stats_v1(await ask.statistics.of_job(job)))


@router.get(
    "/jobs/{job}/executions",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": v1.V1ExecutionPage}},
    summary="The history of a job, newest first",
)
async def history(job: JobRef, query: Annotated[V1HistoryQuery, Query()], ask: Ask) -> Response:
    page = await ask.executions.page(job, limit=query.limit, offset=query.offset, status=query.status)
    shown = [execution_json(execution) for execution in page.items]
    return JSONResponse({"executions": shown, **page.bounds})


@router.get(
    "/executions/{execution}",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": ExecutionDetail}},
    summary="One execution with its attempts",
)
async def read_execution(execution: ExecutionRef, ask: Ask) -> Response:
    found = await ask.executions.get(execution)
    attempts = await ask.executions.attempts(execution)
    return JSONResponse(execution_json(found) | {"attempts": [attempt_json(one) for one in attempts]})


def _answer(job: Job, ask: Ask, status: int = 200, headers: dict[str, str] | None = None) -> JSONResponse:
    shown = v1.job_v1(job, ask.clock.now())
    return JSONResponse(shown, status, headers={"ETag": f'"{job.revision}"', **(headers or {})})
