"""`/api/jobs`: services declare their jobs, people look after them."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.bodies import JobBody, RunBody
from noonday.api.callers import Who, needs
from noonday.api.dialects.registry import (
    CronBody,
    RegisterAllBody,
    RegisterBody,
    as_sent,
    to_declaration,
    to_declarations,
)
from noonday.api.dialects.registry_shapes import (
    Done,
    DoneWithJob,
    RegisteredJob,
    RegisteredJobs,
    Registration,
    RegistrationOfAll,
    RegistryExecution,
    RegistryHistory,
    RegistryStats,
    Triggered,
)
from noonday.api.dialects.registry_views import (
    execution_view,
    job_view,
    pagination,
    registered_all_view,
    registered_view,
    stats_view,
)
from noonday.api.paging import Counting, Limit
from noonday.api.routes.jobs import JobRef
from noonday.api.schemas import apply_body
from noonday.api.services import Ask
from noonday.api.waiting import Prefer, applied, settled
from noonday.control.secrets import restored
from noonday.domain.access import Right
from noonday.domain.errors import Invalid, NotAllowed
from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job
from noonday.store.jobs import JobFilter

router = Router(prefix="/api/jobs", tags=["registry"])

_READ, _RUN, _OPERATE, _EDIT, _REGISTER = (
    [needs(right)] for right in (Right.READ, Right.RUN, Right.OPERATE, Right.EDIT, Right.REGISTER)
)


class RegistryQuery(Counting):
    service: Annotated[str, Field(max_length=100)] | None = None
    enabled: bool | None = None
    name: Annotated[str, Field(max_length=200, description="a part of the name")] | None = None
    limit: Limit = 200


class RunsQuery(Counting):
    status: ExecutionState | None = None


Days = Annotated[int, Query(ge=1, le=3660, description="today and the days before it, in UTC")]


@router.post(
    "/register",
    dependencies=_REGISTER,
    responses={200: {"model": Registration}, 201: {"model": Registration, "description": "the job is new"}},
    summary="Declare a job: create it, or bring it up to date where nobody has changed it",
)
async def register(body: RegisterBody, ask: Ask, who: Who) -> Response:
    now = ask.clock.now()
    try:
        done = await ask.registry.register(to_declaration(body, body.service, now, ask.defaults), who)
    except Invalid as error:
        raise as_sent(error) from error
    shown = registered_view(done, await ask.registry.get(done.job.id), now)
    return JSONResponse(shown, 201 if done.created else 200)


@router.post(
    "/register/all",
    dependencies=_REGISTER,
    responses={200: {"model": RegistrationOfAll}},
    summary="Declare all jobs of a service, and say what becomes of those it declares no more",
)
async def register_all(body: RegisterAllBody, ask: Ask, who: Who) -> Response:
    try:
        said = await run_in_threadpool(to_declarations, body, ask.clock.now(), ask.defaults)
        done = await ask.registry.register_all(body.service, said, who, prune=body.prune == "disable")
    except Invalid as error:
        raise as_sent(error) from error
    return JSONResponse(registered_all_view(body.service, done))


@router.get("", dependencies=_READ, responses={200: {"model": RegisteredJobs}}, summary="List jobs, by name")
async def find(query: Annotated[RegistryQuery, Query()], ask: Ask, who: Who) -> Response:
    if query.service is not None and not who.owns(query.service):
        raise NotAllowed(f"{who.name} sees the jobs of {who.service!r} alone")
    wanted = JobFilter(service=query.service or who.service, enabled=query.enabled, name=query.name)
    page = await ask.registry.page(wanted, limit=query.limit, offset=query.offset)
    now = ask.clock.now()
    shown = await run_in_threadpool(lambda: [job_view(one, now) for one in page.items])
    return JSONResponse({"jobs": shown, "total": page.total, "pagination": pagination(page)})


@router.get("/{job}", dependencies=_READ, responses={200: {"model": RegisteredJob}}, summary="Read a job")
async def read(job: JobRef, ask: Ask) -> Response:
    return JSONResponse(job_view(await ask.registry.get(job), ask.clock.now()))


@router.delete(
    "/{job}",
    dependencies=_EDIT,
    responses={200: {"model": Done}},
    summary="Delete a job and its history",
)
async def delete(job: JobRef, ask: Ask, who: Who) -> Response:
    gone = await ask.jobs.remove(job, who.name)
    return JSONResponse({"success": True, "message": f"{gone.name} was deleted"})


@router.post(
    "/{job}/trigger",
    dependencies=_RUN,
    status_code=202,
    responses={
        202: {"model": Triggered},
        200: {"model": RegistryExecution, "description": "the run has ended while the caller waited"},
    },
    summary="Run it now",
)
async def trigger(
    job: JobRef, ask: Ask, who: Who, body: RunBody | None = None, prefer: Prefer = None
) -> Response:
    config = None if body is None or body.config is None else restored(body.config, None, "config")
    run = await ask.jobs.force_run(job, who.name, config=config)
    name = (await ask.jobs.get(run.job_id)).name
    headers = {"Location": f"/api/v2/executions/{run.id}"}
    ended = await settled(ask, run.id, prefer)
    if ended is not None:
        return JSONResponse(execution_view(ended, name), headers=headers | applied(prefer))
    shown = {"success": True, "message": f"{name} runs now", "jobName": name, "executionId": run.id}
    return JSONResponse(shown, 202, headers=headers)


@router.post(
    "/{job}/enable",
    dependencies=_OPERATE,
    responses={200: {"model": DoneWithJob}},
    summary="Let its schedule fire again, from the next time on",
)
async def enable(job: JobRef, ask: Ask, who: Who) -> Response:
    return await _done(await ask.jobs.enable(job, who.name), "is enabled", ask)


@router.post(
    "/{job}/disable",
    dependencies=_OPERATE,
    responses={200: {"model": DoneWithJob}},
    summary="Let its schedule rest",
)
async def disable(job: JobRef, ask: Ask, who: Who) -> Response:
    return await _done(await ask.jobs.disable(job, who.name), "is disabled", ask)


@router.put(
    "/{job}/cron",
    dependencies=_EDIT,
    responses={200: {"model": DoneWithJob}},
    summary="Give it another schedule, which stays when its service declares it again",
)
async def change_cron(job: JobRef, body: CronBody, ask: Ask, who: Who) -> Response:
    now = ask.clock.now()
    fields = {"schedule_type": "cron", "cron_expression": body.cron_expression, "timezone": body.timezone}
    change = JobBody.model_validate({name: value for name, value in fields.items() if value is not None})

    def edit(current: Job) -> Job:
        return apply_body(change, current, now, ask.defaults)

    try:
        changed = await ask.jobs.change(job, edit, who.name)
    except Invalid as error:
        raise as_sent(error) from error
    return await _done(changed, f"runs by {body.cron_expression} now", ask)


@router.get(
    "/{job}/history",
    dependencies=_READ,
    responses={200: {"model": RegistryHistory}},
    summary="What ran, newest first, with the results in full",
)
async def history(job: JobRef, query: Annotated[RunsQuery, Query()], ask: Ask) -> Response:
    found = await ask.jobs.get(job)
    page = await ask.executions.page(found.id, limit=query.limit, offset=query.offset, status=query.status)
    shown = [execution_view(execution, found.name) for execution in page.items]
    return JSONResponse({"executions": shown, "pagination": pagination(page)})


@router.get(
    "/{job}/stats",
    dependencies=_READ,
    responses={200: {"model": RegistryStats}},
    summary="How it fared over some days",
)
async def stats(job: JobRef, ask: Ask, days: Days = 30) -> Response:
    return JSONResponse(stats_view(await ask.statistics.of_job(job, days)))


async def _done(job: Job, words: str, ask: Ask) -> JSONResponse:
    shown = job_view(await ask.registry.get(job.id), ask.clock.now())
    return JSONResponse({"success": True, "message": f"{job.name} {words}", "job": shown})
