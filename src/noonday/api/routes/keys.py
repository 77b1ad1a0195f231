"""`/api/v2/keys`: API keys, made and revoked; and who am I?"""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo

from fastapi import Depends, Path, Query, Response
from fastapi.responses import JSONResponse

from noonday.api.access import (
    CallerShape,
    KeyBody,
    KeyPage,
    KeyShape,
    NewKeyShape,
    caller_json,
    key_json,
)
from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.paging import Counting
from noonday.api.schedules import read_instant
from noonday.api.services import Ask, v2_is_on
from noonday.domain.access import Right

router = Router(prefix="/api/v2", tags=["access"], dependencies=[Depends(v2_is_on)])

_UTC = ZoneInfo("UTC")
KeyRef = Annotated[str, Path(alias="key", description="the key's id or its prefix", max_length=200)]


@router.post(
    "/keys",
    status_code=201,
    dependencies=[needs(Right.ACCESS)],
    responses={201: {"model": NewKeyShape}},
    summary="Make an API key: it is shown this once",
)
async def create(body: KeyBody, ask: Ask, who: Who) -> Response:
    expires_at = body.expires_at and read_instant("expires_at", body.expires_at, _UTC)
    made, text = await ask.keys.create(
        body.name, body.role, service=body.service, expires_at=expires_at, by=who.name
    )
    shown = key_json(made, ask.clock.now()) | {"key": text}
    return JSONResponse(shown, 201, headers={"Location": f"/api/v2/keys/{made.id}"})


@router.get(
    "/keys",
    dependencies=[needs(Right.ACCESS)],
    responses={200: {"model": KeyPage}},
    summary="API keys, newest first, the revoked ones too",
)
async def find(query: Annotated[Counting, Query()], ask: Ask) -> Response:
    page = await ask.keys.page(limit=query.limit, offset=query.offset)
    now = ask.clock.now()
    shown = [key_json(key, now) for key in page.items]
    return JSONResponse({"keys": shown, **page.bounds})


@router.get(
    "/keys/{key}",
    dependencies=[needs(Right.ACCESS)],
    responses={200: {"model": KeyShape}},
    summary="One API key",
)
async def read(key: KeyRef, ask: Ask) -> Response:
    return JSONResponse(key_json(await ask.keys.get(key), ask.clock.now()))


@router.delete(
    "/keys/{key}",
    dependencies=[needs(Right.ACCESS)],
    responses={200: {"model": KeyShape}},
    summary="Revoke an API key: it is refused everywhere within seconds",
)
async def revoke(key: KeyRef, ask: Ask, who: Who) -> Response:
    return JSONResponse(key_json(await ask.keys.revoke(key, who.name), ask.clock.now()))


@router.get(
    "/whoami",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": CallerShape}},
    summary="Who the scheduler takes you for, and what you may do",
)
async def whoami(who: Who) -> Response:
    return JSONResponse(caller_json(who))
