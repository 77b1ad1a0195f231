"""`/docs` and `/openapi.json`: the API described, on one page that needs no network, and for programs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files

from fastapi import FastAPI, Request, Response
from starlette.concurrency import run_in_threadpool

from noonday.api.answers import Router
from noonday.api.callers import open_to_all

router = Router(prefix="", tags=["documents"], dependencies=[open_to_all], include_in_schema=False)

_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HTML = "text/html; charset=utf-8"


@dataclass(frozen=True, slots=True)
class _File:
    media_type: str
    body: bytes

    def answer(self, request: Request) -> Response:
        tag = f'"{sha256(self.body).hexdigest()[:16]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache", "Content-Security-Policy": _POLICY}
        if tag in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        return Response(self.body, headers=headers, media_type=self.media_type)


@router.get("/openapi.json", summary="The API for programs")
async def document(request: Request) -> Response:
    return (await _made(request.app))["openapi.json"].answer(request)


@router.get("/docs", summary="The API for people")
async def docs(request: Request) -> Response:
    return (await _made(request.app))["docs"].answer(request)


@router.get("/docs/reference.css", summary="How the page looks")
async def style(request: Request) -> Response:
    return (await _made(request.app))["reference.css"].answer(request)


@router.get("/docs/reference.js", summary="The page's search")
async def script(request: Request) -> Response:
    return (await _made(request.app))["reference.js"].answer(request)


async def _made(app: FastAPI) -> dict[str, _File]:
    """Once for each application: routes do not change while it runs."""
    found: dict[str, _File] | None = getattr(app.state, "documents", None)
    if found is None:
        found = app.state.documents = await run_in_threadpool(_make, app)
    return found


def _make(app: FastAPI) -> dict[str, _File]:
    from noonday.api.reference import page  # noqa: PLC0415 - few ever ask for it, and this is a thread

    described = app.openapi()
    pages = files("noonday.api") / "pages"
    return {
        "openapi.json": _File("application/json", json.dumps(described, ensure_ascii=False).encode()),
        "docs": _File(_HTML, page(described).encode()),
        "reference.css": _File("text/css; charset=utf-8", (pages / "reference.css").read_bytes()),
        "reference.js": _File("text/javascript; charset=utf-8", (pages / "reference.js").read_bytes()),
    }
