"""Addresses that one may expect, of pages that are elsewhere."""

from __future__ import annotations

from fastapi import APIRouter, Response
from fastapi.responses import RedirectResponse

from noonday.api.callers import needs, open_to_all
from noonday.domain.access import Right

router = APIRouter(include_in_schema=False)


@router.get("/ui/queues", dependencies=[needs(Right.READ)])
async def queues() -> Response:
    return RedirectResponse("/ui/workers#lanes-head", 307)


@router.get("/ui/api", dependencies=[open_to_all])
async def reference() -> Response:
    return RedirectResponse("/docs", 307)
