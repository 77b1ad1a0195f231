"""`/api/v2/audit`: who changed what; and back to how it was."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.audit import (
    AuditPage,
    Reverted,
    RevertRehearsed,
    RevisionShape,
    entry_json,
    revision_json,
)
from noonday.api.bodies import Body
from noonday.api.callers import Who, needs
from noonday.api.fields import Instant
from noonday.api.paging import Paging, paged
from noonday.api.rehearsing import DryRun, rehearsal_json
from noonday.api.routes.jobs import IfMatch, JobRef, revision
from noonday.api.schedules import read_instant
from noonday.api.schemas import job_json
from noonday.api.services import Ask, v2_is_on
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.store.audit import AuditFilter

router = Router(prefix="/api/v2", tags=["audit"], dependencies=[Depends(v2_is_on)])

_MOST = (1 << 31) - 1
_UTC = ZoneInfo("UTC")
_SEARCH = "a search such as `actor:ada action:pause,resume at:<2d`"
Word = Annotated[str, Field(max_length=200)]
Number = Annotated[int, Path(ge=1, le=_MOST, description="the job's revision, as its ETag tells it")]


class AuditQuery(Paging):
    actor: Annotated[Word, Field(description="who did it")] | None = None
    action: Annotated[Word, Field(description="what was done: create, update, pause, …")] | None = None
    since: Annotated[Instant, Field(description="not before this instant")] | None = None
    until: Annotated[Instant, Field(description="before this instant")] | None = None
    q: Annotated[str, Field(max_length=searching.LONGEST, description=_SEARCH)] | None = None


class TrailQuery(AuditQuery):
    kind: Annotated[Word, Field(description="of what: job, execution, breaker, key, …")] | None = None
    job: Annotated[Word, Field(description="a job's name or id; the id of a deleted one too")] | None = None


class RevertBody(Body):
    revision: Annotated[int, Field(ge=1, le=_MOST, description="the one to go back to")]


@router.get(
    "/audit",
    dependencies=[needs(Right.ACCESS)],
    responses={200: {"model": AuditPage}},
    summary="Every change, newest first",
)
async def trail(query: Annotated[TrailQuery, Query()], request: Request, ask: Ask) -> Response:
    subject = None if query.job is None else await ask.audit.subject(query.job)
    kind = "job" if subject is not None and query.kind is None else query.kind
    return await _listed(query, request, ask, kind, subject)


@router.get(
    "/jobs/{job}/audit",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": AuditPage}},
    summary="Every change of a job, newest first",
)
async def trail_of_job(
    job: JobRef, query: Annotated[AuditQuery, Query()], request: Request, ask: Ask
) -> Response:
    return await _listed(query, request, ask, "job", await ask.audit.subject(job))


@router.get(
    "/jobs/{job}/revisions/{number}",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": RevisionShape}},
    summary="A job as it was",
)
async def read_revision(job: JobRef, number: Number, ask: Ask) -> Response:
    found = await ask.audit.revision(job, number)
    return JSONResponse(await run_in_threadpool(revision_json, found, ask.clock.now()))


@router.post(
    "/jobs/{job}/revert",
    dependencies=[needs(Right.EDIT)],
    responses={200: {"model": Reverted | RevertRehearsed}},
    summary="Back to an earlier revision",
)
async def revert(
    job: JobRef, body: RevertBody, ask: Ask, who: Who, if_match: IfMatch = None, dry_run: DryRun = False
) -> Response:
    verb = ask.audit.revert(job, body.revision, who.name, revision(if_match))
    now = ask.clock.now()
    if dry_run:
        shown = rehearsal_json(await ask.jobs.rehearse(verb, job), now)
        return JSONResponse(shown | {"kept_secrets": list(verb.kept_secrets)})
    made = await ask.jobs.do(verb)
    shown = {
        "job": job_json(made, now),
        "reverted_to": body.revision,
        "kept_secrets": list(verb.kept_secrets),
    }
    return JSONResponse(shown, headers={"ETag": f'"{made.revision}"'})


async def _listed(
    query: AuditQuery, request: Request, ask: Ask, kind: str | None, subject: str | None
) -> Response:
    wanted = AuditFilter(
        actor=query.actor,
        action=query.action,
        kind=kind,
        subject_id=subject,
        since=query.since and read_instant("since", query.since, _UTC),
        until=query.until and read_instant("until", query.until, _UTC),
        terms=searching.parse(query.q or "", search_fields.AUDIT, ask.clock.now()),
    )
    page = await ask.audit.find(wanted, limit=query.limit, offset=query.offset, after=query.mark())
    return paged(request, "entries", [entry_json(entry) for entry in page.items], page)
