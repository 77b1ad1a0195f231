"""The history of jobs, under version 2 and under the seeds' version 1."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from noonday.api.callers import Who, needs
from noonday.api.routes.jobs import JobRef
from noonday.api.schemas import attempt_json, execution_json
from noonday.api.services import Ask, v2_is_on
from noonday.api.shapes import ExecutionDetail, ExecutionPage, ExecutionShape
from noonday.domain.access import Right
from noonday.domain.execution import ExecutionState

router = APIRouter(tags=["executions"])

ExecutionRef = Annotated[str, Path(alias="execution", description="the execution's id", max_length=200)]
_READ = [needs(Right.READ)]
_V2 = [Depends(v2_is_on)]
_DEPRECATED_AT = "@1798761600"  # RFC 9745: 2027-01-01


class HistoryQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    status: ExecutionState | None = None
    limit: Annotated[int, Field(ge=1, le=200)] = 50
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0


def _points_to_v2(request: Request, response: Response) -> None:
    """Version 1 still answers, and says where its successor is."""
    response.headers["Deprecation"] = _DEPRECATED_AT
    successor = request.url.path.replace("/api/v1/", "/api/v2/", 1)
    response.headers["Link"] = f'<{successor}>; rel="successor-version"'


@router.get(
    "/api/v2/jobs/{job}/executions",
    dependencies=_V2 + _READ,
    responses={200: {"model": ExecutionPage}},
    summary="The history of a job, newest first",
)
@router.get(
    "/api/v1/jobs/{job}/executions",
    dependencies=_READ,
    responses={200: {"model": ExecutionPage}},
    summary="The history of a job, newest first",
    deprecated=True,
)
async def history(
    job: JobRef, query: Annotated[HistoryQuery, Query()], request: Request, ask: Ask
) -> Response:
    page = await ask.executions.page(job, limit=query.limit, offset=query.offset, status=query.status)
    shown = [execution_json(execution) for execution in page.items]
    return _answer(
        request,
        {"executions": shown, "total": page.total, "limit": page.limit, "offset": page.offset},
    )


@router.get(
    "/api/v2/executions/{execution}",
    dependencies=_V2 + _READ,
    responses={200: {"model": ExecutionDetail}},
    summary="One execution with its attempts",
)
@router.get(
    "/api/v1/executions/{execution}",
    dependencies=_READ,
    responses={200: {"model": ExecutionDetail}},
    summary="One execution with its attempts",
    deprecated=True,
)
async def read(execution: ExecutionRef, request: Request, ask: Ask) -> Response:
    found = await ask.executions.get(execution)
    attempts = await ask.executions.attempts(execution)
    return _answer(request, execution_json(found) | {"attempts": [attempt_json(one) for one in attempts]})


@router.post(
    "/api/v2/executions/{execution}/cancel",
    status_code=202,
    dependencies=[*_V2, needs(Right.OPERATE)],
    responses={202: {"model": ExecutionShape}},
    summary="Cancel what waits, ask what runs to stop",
)
async def cancel(execution: ExecutionRef, ask: Ask, who: Who) -> Response:
    return JSONResponse(execution_json(await ask.executions.cancel(execution, who.name)), 202)


def _answer(request: Request, shown: dict[str, object]) -> JSONResponse:
    response = JSONResponse(shown)
    if request.url.path.startswith("/api/v1/"):
        _points_to_v2(request, response)
    return response
