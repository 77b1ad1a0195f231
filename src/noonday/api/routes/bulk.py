"""`/api/v2/jobs/bulk`: one action on all jobs that a filter finds."""

from __future__ import annotations

from fastapi import Depends, Request, Response
from fastapi.responses import JSONResponse

from noonday.api.answers import Router
from noonday.api.bulk import BulkBody, BulkDone, BulkPreview, done_json, preview_json
from noonday.api.callers import Who, demand, needs
from noonday.api.paging import own_service
from noonday.api.rehearsing import DryRun
from noonday.api.services import Ask, v2_is_on
from noonday.control.bulk import RIGHTS, choose
from noonday.domain.access import Right

router = Router(prefix="/api/v2/jobs/bulk", tags=["jobs"], dependencies=[Depends(v2_is_on)])


@router.post(
    "",
    dependencies=[needs(Right.RUN)],
    responses={200: {"model": BulkDone | BulkPreview}, 409: {"description": "another number of jobs match"}},
    summary="Pause, resume, cancel, run, delete, enable or disable many jobs",
)
async def act_on_many(
    body: BulkBody, request: Request, ask: Ask, who: Who, dry_run: DryRun = False
) -> Response:
    """Running needs the right to run, deleting the right to edit, all else the right to operate."""
    await demand(request, RIGHTS[body.action])
    choice = choose(body.filter, body.jobs, ask.clock.now(), all=body.all, service=own_service(who))
    if dry_run or body.dry_run:
        return JSONResponse(preview_json(body.action, await ask.bulk.preview(choice)))
    done = await ask.bulk.act(body.action, choice, who.name, expect=body.expect)
    return JSONResponse(done_json(body.action, done))
