"""What can be done with a job: pause, resume, cancel, force-run, retry."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import JSONResponse

from noonday.api.bodies import ResumeBody, RunBody
from noonday.api.callers import Who, needs
from noonday.api.routes.jobs import JobRef, answer
from noonday.api.services import Ask, v2_is_on
from noonday.api.shapes import JobShape, Started
from noonday.control.secrets import restored
from noonday.domain.access import Right
from noonday.domain.execution import Execution

router = APIRouter(prefix="/api/v2/jobs/{job}", tags=["jobs"], dependencies=[Depends(v2_is_on)])

CatchUp = Annotated[bool, Query(description="treat what fell into the pause as the misfire rules say")]


@router.post(
    "/pause",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape}},
    summary="Let nothing of it fire until resumed",
)
async def pause(job: JobRef, ask: Ask, who: Who) -> Response:
    return answer(await ask.jobs.pause(job, who.name), ask)


@router.post(
    "/resume",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape}},
    summary="Go on with the next future time",
)
async def resume(
    job: JobRef, ask: Ask, who: Who, body: ResumeBody | None = None, catch_up: CatchUp = False
) -> Response:
    wanted = catch_up or (body is not None and body.catch_up)
    return answer(await ask.jobs.resume(job, who.name, catch_up=wanted), ask)


@router.post(
    "/cancel",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape}},
    summary="End it for good, what runs included",
)
async def cancel(job: JobRef, ask: Ask, who: Who) -> Response:
    return answer(await ask.jobs.cancel(job, who.name), ask)


@router.post(
    "/force-run",
    dependencies=[needs(Right.RUN)],
    status_code=202,
    responses={202: {"model": Started}},
    summary="Run it now",
)
async def force_run(job: JobRef, ask: Ask, who: Who, body: RunBody | None = None) -> Response:
    config = None if body is None or body.config is None else restored(body.config, None, "config")
    return _started("the job will run now", await ask.jobs.force_run(job, who.name, config=config))


@router.post(
    "/retry",
    dependencies=[needs(Right.RUN)],
    status_code=202,
    responses={202: {"model": Started}},
    summary="Run again what failed",
)
async def retry(job: JobRef, ask: Ask, who: Who) -> Response:
    return _started("the job will be tried again now", await ask.jobs.retry(job, who.name))


def _started(message: str, execution: Execution) -> JSONResponse:
    shown = {"message": message, "job_id": execution.job_id, "execution_id": execution.id}
    return JSONResponse(shown, 202, headers={"Location": f"/api/v2/executions/{execution.id}"})
