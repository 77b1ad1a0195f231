"""Where a run that answered 202 reports: signs of life, progress, its result; opened by its token."""

from __future__ import annotations

from typing import Annotated, assert_never

from fastapi import Body, Header, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from noonday.api.answers import Router
from noonday.api.bodies import (
    CallbackBody,
    HeartbeatCall,
    ProgressCall,
    ReportBody,
    ResultBody,
    ResultCall,
)
from noonday.api.callers import open_to_all
from noonday.api.routes.executions import ExecutionRef
from noonday.api.services import Ask
from noonday.api.shapes import CallbackAnswer
from noonday.control.executions import Report
from noonday.domain.outcome import Completed, Failed, Result

router = Router(
    prefix="/api/v2/executions/{execution}",
    tags=["callbacks"],
    dependencies=[open_to_all],
    responses={200: {"model": CallbackAnswer}},
)

Authorization = Annotated[str | None, Header(description="Bearer and the callback token")]
OwnHeader = Annotated[str | None, Header(alias="X-Scheduler-Callback-Token")]


@router.post("/callback", summary="Any report, told apart by its type")
async def call(
    execution: ExecutionRef,
    body: Annotated[CallbackBody, Body()],
    ask: Ask,
    authorization: Authorization = None,
    x_scheduler_callback_token: OwnHeader = None,
) -> Response:
    token = _token(authorization, x_scheduler_callback_token)
    match body:
        case HeartbeatCall():
            return _answer(await ask.executions.report(execution, token, Report()))
        case ProgressCall():
            return _answer(await ask.executions.report(execution, token, _report(body)))
        case ResultCall():
            return _answer(await ask.executions.result(execution, token, _outcome(body)))
        case _:
            assert_never(body)


@router.post("/heartbeat", include_in_schema=False)
@router.post("/callback/heartbeat", summary="The run is alive")
async def heartbeat(
    execution: ExecutionRef,
    ask: Ask,
    body: ReportBody | None = None,
    authorization: Authorization = None,
    x_scheduler_callback_token: OwnHeader = None,
) -> Response:
    token = _token(authorization, x_scheduler_callback_token)
    return _answer(await ask.executions.report(execution, token, _report(body or ReportBody())))


@router.post("/progress", include_in_schema=False)
@router.post("/callback/progress", summary="The run is alive and has come so far")
async def progress(
    execution: ExecutionRef,
    body: ReportBody,
    ask: Ask,
    authorization: Authorization = None,
    x_scheduler_callback_token: OwnHeader = None,
) -> Response:
    token = _token(authorization, x_scheduler_callback_token)
    return _answer(await ask.executions.report(execution, token, _report(body)))


@router.post("/result", include_in_schema=False)
@router.post("/callback/result", summary="The run has ended, well or not")
async def result(
    execution: ExecutionRef,
    body: ResultBody,
    ask: Ask,
    authorization: Authorization = None,
    x_scheduler_callback_token: OwnHeader = None,
) -> Response:
    token = _token(authorization, x_scheduler_callback_token)
    return _answer(await ask.executions.result(execution, token, _outcome(body)))


def _token(authorization: str | None, own: str | None) -> str:
    scheme, _, bearer = (authorization or "").partition(" ")
    token = bearer.strip() if scheme.lower() == "bearer" else own
    if not token:
        raise HTTPException(
            401, "send the callback token as Authorization: Bearer …", {"WWW-Authenticate": "Bearer"}
        )
    return token[:500]


def _report(body: ReportBody) -> Report:
    return Report(progress=body.progress, message=body.message, output=body.output)


def _outcome(body: ResultBody) -> Completed | Failed:
    found = Result(
        items_processed=body.items_processed,
        items_succeeded=body.items_succeeded,
        items_failed=body.items_failed,
        metadata=body.metadata,
    )
    if body.success:
        return Completed(result=found)
    return Failed(error=body.error or "the run reported a failure", retryable=body.retryable, result=found)


def _answer(cancel_requested: bool) -> JSONResponse:
    return JSONResponse({"cancel_requested": cancel_requested})
