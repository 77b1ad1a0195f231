"""The history of jobs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.paging import Paging, own_service, paged
from noonday.api.routes.jobs import JobRef
from noonday.api.schemas import attempt_json, execution_json, output_json
from noonday.api.services import Ask, v2_is_on
from noonday.api.shapes import ExecutionDetail, ExecutionPage, ExecutionShape, OutputShape
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.execution import ExecutionState
from noonday.store.history import ExecutionFilter

router = Router(tags=["executions"])

ExecutionRef = Annotated[str, Path(alias="execution", description="the execution's id", max_length=200)]
_READ = [needs(Right.READ)]
_V2 = [Depends(v2_is_on)]
_SEARCH = (
    "a search such as `status:failed job:digest* due:<2d took:>30s`; a plain word is a part of the job's name"
)


class ExecutionQuery(Paging):
    status: ExecutionState | None = None
    q: Annotated[str, Field(max_length=searching.LONGEST, description=_SEARCH)] | None = None


@router.get(
    "/api/v2/executions",
    dependencies=_V2 + _READ,
    responses={200: {"model": ExecutionPage}},
    summary="The history of all jobs, newest first",
)
async def find(query: Annotated[ExecutionQuery, Query()], request: Request, ask: Ask, who: Who) -> Response:
    return await _listed(query, request, ask, who)


@router.get(
    "/api/v2/jobs/{job}/executions",
    dependencies=_V2 + _READ,
    responses={200: {"model": ExecutionPage}},
    summary="The history of a job, newest first",
)
async def find_of_job(
    job: JobRef, query: Annotated[ExecutionQuery, Query()], request: Request, ask: Ask, who: Who
) -> Response:
    return await _listed(query, request, ask, who, job)


async def _listed(
    query: ExecutionQuery, request: Request, ask: Ask, who: Who, job: str | None = None
) -> Response:
    wanted = ExecutionFilter(
        status=query.status,
        service=own_service(who),
        terms=searching.parse(query.q or "", search_fields.EXECUTIONS, ask.clock.now()),
    )
    page = await ask.executions.find(
        wanted, job=job, limit=query.limit, offset=query.offset, after=query.mark()
    )
    return paged(request, "executions", [execution_json(one) for one in page.items], page)


@router.get(
    "/api/v2/executions/{execution}",
    dependencies=_V2 + _READ,
    responses={200: {"model": ExecutionDetail}},
    summary="One execution with its attempts",
)
async def read(execution: ExecutionRef, ask: Ask) -> Response:
    found = await ask.executions.get(execution)
    attempts = await ask.executions.attempts(execution)
    return JSONResponse(execution_json(found) | {"attempts": [attempt_json(one) for one in attempts]})


class OutputQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    after: Annotated[int, Field(ge=0, le=1 << 62, description="`next` of the answer before")] = 0
    attempt: (
        Annotated[int, Field(ge=1, le=1 << 31, description="which attempt; without it, the newest")] | None
    ) = None


@router.get(
    "/api/v2/executions/{execution}/output",
    dependencies=_V2 + _READ,
    responses={200: {"model": OutputShape}},
    summary="What a run writes, as it runs",
)
async def output(execution: ExecutionRef, query: Annotated[OutputQuery, Query()], ask: Ask) -> Response:
    return JSONResponse(output_json(await ask.outputs.read(execution, query.attempt, query.after)))


@router.post(
    "/api/v2/executions/{execution}/cancel",
    status_code=202,
    dependencies=[*_V2, needs(Right.OPERATE)],
    responses={202: {"model": ExecutionShape}},
    summary="Cancel what waits, ask what runs to stop",
)
async def cancel(execution: ExecutionRef, ask: Ask, who: Who) -> Response:
    return JSONResponse(execution_json(await ask.executions.cancel(execution, who.name)), 202)
