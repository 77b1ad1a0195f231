"""One table from what went wrong to an answer: problem+json (RFC 9457) with the seeds' `error` text."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from structlog.contextvars import get_contextvars

from noonday.control.errors import Gone, KeyReused, Outdated, StillAnswering
from noonday.control.secrets import looks_secret, redacted
from noonday.domain.errors import (
    Conflict,
    Invalid,
    MoveRefused,
    NoondayError,
    NotAllowed,
    NotFound,
    Unavailable,
    Unidentified,
)

__all__ = ["MEDIA_TYPE", "STATUSES", "answer", "install", "refused"]

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
STATUSES: Mapping[type[NoondayError], int] = {  # the first that fits
    NotFound: 404,
    Invalid: 422,
    Outdated: 412,
    Gone: 410,
    KeyReused: 422,
    MoveRefused: 409,
    Conflict: 409,
    NotAllowed: 403,
    Unidentified: 401,
    Unavailable: 503,
}
_HEADERS: Mapping[type[NoondayError], Mapping[str, str]] = {
    Unavailable: {"Retry-After": "5"},
    StillAnswering: {"Retry-After": "1"},
    Unidentified: {"WWW-Authenticate": "Bearer"},
}
_TITLES = {413: "Content Too Large", 422: "Unprocessable Content"}  # Python's own differ by version
_WITHOUT_VALUE = frozenset({"extra_forbidden", "missing", "json_invalid"})
_PREFIX = re.compile(r"^(Value error, |(Input|String|List|Dictionary) (?=should))")
_STEPS = re.compile(r"\[\d+\]|[^.\[\]]+")
_MOST_ERRORS = 50
_LONGEST_VALUE = 200


def answer(
    status: int,
    detail: str,
    *,
    kind: str | None = None,
    more: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    title = _TITLES.get(status) or HTTPStatus(status).phrase
    body = {
        "type": f"urn:noonday:problem:{kind or title.lower().replace(' ', '-')}",
        "title": title,
        "status": status,
        "detail": detail,
        "error": detail,
        **(more or {}),
    }
    if request_id := get_contextvars().get("request_id"):
        body["request_id"] = request_id
    return JSONResponse(body, status, headers=dict(headers or {}), media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    app.add_exception_handler(NoondayError, _refused)
    app.add_exception_handler(RequestValidationError, _misshapen)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(Exception, _defect)


async def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, NoondayError)
    return refused(error, _body(request))


def refused(error: NoondayError, body: Any) -> JSONResponse:
    status = next((code for kind, code in STATUSES.items() if isinstance(error, kind)), 500)
    more: dict[str, Any] = {}
    if isinstance(error, Invalid):
        problems = error.problems[:_MOST_ERRORS]
        more["errors"] = [_error(_as_sent(p.field, body), p.message, body) for p in problems]
    if isinstance(error, MoveRefused):
        more |= {"current": error.current, "wanted": error.wanted}
    headers = next((more for kind, more in _HEADERS.items() if isinstance(error, kind)), {})
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", type(error).__name__).lower()
    return answer(status, str(error).removeprefix(": "), kind=kind, more=more, headers=headers)


async def _misshapen(request: Request, error: Exception) -> JSONResponse:
    """What pydantic refused, in our words and under the names that the caller used."""
    assert isinstance(error, RequestValidationError)
    lines = [_line(dict(line), _body(request)) for line in error.errors()[:_MOST_ERRORS]]
    text = "; ".join(f"{line['field'] or 'body'}: {line['detail']}" for line in lines)
    return answer(422, text, kind="invalid", more={"errors": lines})


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    words = {404: "there is nothing at this address", 405: "this address does not know that method"}
    detail = words.get(error.status_code, str(error.detail))
    return answer(error.status_code, detail, headers=error.headers)


async def _defect(request: Request, error: Exception) -> JSONResponse:
    log.error("request failed: %s %s", request.method, request.url.path, exc_info=error)
    return answer(500, "something went wrong inside the scheduler; its log says more")


def _body(request: Request) -> Any:
    """As the guard at the door read it."""
    return request.scope.get("noonday.json")


def _line(line: Mapping[str, Any], body: Any) -> dict[str, Any]:
    where, *path = line["loc"]
    name = str(path[-1] if path else where)
    detail = _with_value(line, name)
    if where == "body":
        return _error(_field(_without_tags(path, body)), detail, body)
    return {"field": name, "in": where, "value": _shown(name, line["input"]), "detail": detail}


def _with_value(line: Mapping[str, Any], name: str) -> str:
    words, value = _words(line), line["input"]
    if line["type"] in _WITHOUT_VALUE or not isinstance(value, str | int | float | None):
        return words
    return f"{_shown(name, value)!r} {words}"


def _as_sent(field: str, body: Any) -> str:
    """A target may be given by its `url` alone."""
    short = isinstance(body, dict) and body.get("target") is None and body.get("url") is not None
    return field.removeprefix("target.") if short and field == "target.url" else field


def _without_tags(path: Sequence[Any], body: Any) -> list[Any]:
    """The path as the caller sees it: pydantic puts the tag of a union (`http`) between two names."""
    seen: list[Any] = []
    here, tagged = body, False
    for step in path:
        if isinstance(here, dict) and here.get("type") == step and not tagged:
            tagged = True
            continue
        seen.append(step)
        here, tagged = _step(here, step), False
    return seen


def _step(here: Any, step: Any) -> Any:
    if isinstance(here, dict):
        return here.get(step)
    if isinstance(here, list) and isinstance(step, int) and step < len(here):
        return here[step]
    return None


def _field(path: Iterable[Any]) -> str:
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def _words(line: Mapping[str, Any]) -> str:
    match line["type"]:
        case "extra_forbidden":
            return "is not a field of this body"
        case "missing":
            return "is missing"
        case "union_tag_not_found":
            return "needs a type"
        case "json_invalid":
            return f"is not JSON: {line['ctx']['error']}"
        case "model_type" | "model_attributes_type" | "dict_type":
            return "must be an object"
    return (
        str(line["msg"])
        .removeprefix("Value error, ")
        .replace("Input should", "should")
        .replace("String should", "should")
    )


def _error(field: str, message: str, body: Any) -> dict[str, Any]:
    path: list[Any] = [int(step[1:-1]) if step.startswith("[") else step for step in _STEPS.findall(field)]
    value = body
    for step in path:
        value = _step(value, step)
    pointer = "#" + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in path)
    error = {"field": field, "pointer": pointer, "detail": message}
    if path and isinstance(value, str | int | float | bool):
        error["value"] = _shown(str(path[-1]), value)
    return error


def _shown(field: str, value: Any) -> Any:
    """The value as it was sent, without secrets and cut to a readable length."""
    value = redacted(value, secret=looks_secret(field))
    if isinstance(value, str) and len(value) > _LONGEST_VALUE:
        return value[: _LONGEST_VALUE - 3] + "..."
    return value
