"""What can be done with a job: pause, resume, skip-next, enable, disable, cancel, force-run, retry."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Depends, Query, Response
from fastapi.responses import JSONResponse

from noonday.api.answers import Router
from noonday.api.bodies import PauseBody, ResumeBody, RunBody
from noonday.api.callers import Who, needs
from noonday.api.rehearsing import DryRun, Rehearsed
from noonday.api.routes.jobs import IfMatch, JobRef, done, revision
from noonday.api.schemas import execution_json
from noonday.api.services import Ask, v2_is_on
from noonday.api.shapes import JobShape, Started
from noonday.api.waiting import WAITED, Prefer, applied, settled
from noonday.control.secrets import restored
from noonday.domain.access import Right
from noonday.domain.execution import Execution

router = Router(prefix="/api/v2/jobs/{job}", tags=["jobs"], dependencies=[Depends(v2_is_on)])

CatchUp = Annotated[bool, Query(description="treat what fell into the pause as the misfire rules say")]


@router.post(
    "/pause",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape | Rehearsed}},
    summary="Let nothing of it fire until resumed, or until then",
)
async def pause(
    job: JobRef,
    ask: Ask,
    who: Who,
    body: PauseBody | None = None,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> Response:
    until = None if body is None else body.until
    verb = partial(ask.jobs.paused, id_or_name=job, by=who.name, revision=revision(if_match), until=until)
    return await done(ask, verb, job, dry_run)


@router.post(
    "/skip-next",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape | Rehearsed}},
    summary="Let its next run not happen",
)
async def skip_next(
    job: JobRef, ask: Ask, who: Who, if_match: IfMatch = None, dry_run: DryRun = False
) -> Response:
    verb = partial(ask.jobs.next_skipped, id_or_name=job, by=who.name, revision=revision(if_match))
    return await done(ask, verb, job, dry_run)


@router.post(
    "/resume",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape | Rehearsed}},
    summary="Go on with the next future time",
)
async def resume(
    job: JobRef,
    ask: Ask,
    who: Who,
    body: ResumeBody | None = None,
    catch_up: CatchUp = False,
    if_match: IfMatch = None,
    dry_run: DryRun = False,
) -> Response:
    wanted = catch_up or (body is not None and body.catch_up)
    verb = partial(
        ask.jobs.resumed, id_or_name=job, by=who.name, revision=revision(if_match), catch_up=wanted
    )
    return await done(ask, verb, job, dry_run)


@router.post(
    "/enable",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape | Rehearsed}},
    summary="Switch its schedule on",
)
async def enable(
    job: JobRef, ask: Ask, who: Who, if_match: IfMatch = None, dry_run: DryRun = False
) -> Response:
    verb = partial(ask.jobs.enabled, id_or_name=job, by=who.name, revision=revision(if_match))
    return await done(ask, verb, job, dry_run)


@router.post(
    "/disable",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape | Rehearsed}},
    summary="Switch its schedule off; it still runs when asked",
)
async def disable(
    job: JobRef, ask: Ask, who: Who, if_match: IfMatch = None, dry_run: DryRun = False
) -> Response:
    verb = partial(ask.jobs.disabled, id_or_name=job, by=who.name, revision=revision(if_match))
    return await done(ask, verb, job, dry_run)


@router.post(
    "/cancel",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": JobShape | Rehearsed}},
    summary="End it for good, what runs included",
)
async def cancel(
    job: JobRef, ask: Ask, who: Who, if_match: IfMatch = None, dry_run: DryRun = False
) -> Response:
    verb = partial(ask.jobs.cancelled, id_or_name=job, by=who.name, revision=revision(if_match))
    return await done(ask, verb, job, dry_run)


@router.post(
    "/force-run",
    dependencies=[needs(Right.RUN)],
    status_code=202,
    responses={202: {"model": Started}, **WAITED},
    summary="Run it now",
)
async def force_run(
    job: JobRef, ask: Ask, who: Who, body: RunBody | None = None, prefer: Prefer = None
) -> Response:
    config = None if body is None or body.config is None else restored(body.config, None, "config")
    run = await ask.jobs.force_run(job, who.name, config=config)
    return await _started("the job will run now", run, ask, prefer)


@router.post(
    "/retry",
    dependencies=[needs(Right.RUN)],
    status_code=202,
    responses={202: {"model": Started}, **WAITED},
    summary="Run again what failed",
)
async def retry(job: JobRef, ask: Ask, who: Who, prefer: Prefer = None) -> Response:
    run = await ask.jobs.retry(job, who.name)
    return await _started("the job will be tried again now", run, ask, prefer)


async def _started(message: str, run: Execution, ask: Ask, prefer: str | None) -> JSONResponse:
    """202 and where to look, or 200 and how it ended, if the caller waited for that."""
    headers = {"Location": f"/api/v2/executions/{run.id}"}
    ended = await settled(ask, run.id, prefer)
    if ended is not None:
        return JSONResponse(execution_json(ended), headers=headers | applied(prefer))
    return JSONResponse({"message": message, "job_id": run.job_id, "execution_id": run.id}, 202, headers)
