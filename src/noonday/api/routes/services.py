"""`/api/v2/services`: where services live."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Response
from fastapi.responses import JSONResponse

from noonday.api.answers import Router
from noonday.api.callers import Who, needs
from noonday.api.dialects.services import (
    NewServiceBody,
    ServicePage,
    ServiceShape,
    ServiceUrlBody,
    service_json,
)
from noonday.api.fields import ServiceName
from noonday.api.services import Ask, v2_is_on
from noonday.domain.access import Right
from noonday.domain.errors import NotFound

router = Router(prefix="/api/v2/services", tags=["services"], dependencies=[Depends(v2_is_on)])

ServiceRef = Annotated[ServiceName, Path(alias="service", description="the name of the service")]


@router.get(
    "",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": ServicePage}},
    summary="List the services, by name",
)
async def find(ask: Ask, who: Who) -> Response:
    shown = [service_json(known) for known in await ask.service_urls.everyone() if who.owns(known.name)]
    return JSONResponse({"services": shown, "total": len(shown)})


@router.post(
    "",
    status_code=201,
    dependencies=[needs(Right.MANAGE)],
    responses={201: {"model": ServiceShape}},
    summary="Add a service",
)
async def create(body: NewServiceBody, ask: Ask, who: Who) -> Response:
    made = await ask.service_urls.add(body.name, body.url, body.description or "", who.name)
    return JSONResponse(service_json(made), 201, headers={"Location": f"/api/v2/services/{made.name}"})


@router.get(
    "/{service}",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": ServiceShape}},
    summary="Read a service",
)
async def read(service: ServiceRef, ask: Ask, who: Who) -> Response:
    if not who.owns(service):
        raise NotFound(f"there is no service {service!r}")
    return JSONResponse(service_json(await ask.service_urls.get(service)))


@router.put(
    "/{service}",
    dependencies=[needs(Right.MANAGE)],
    responses={200: {"model": ServiceShape}},
    summary="Say where a service lives; add it if it is new",
)
async def change(service: ServiceRef, body: ServiceUrlBody, ask: Ask, who: Who) -> Response:
    known = await ask.service_urls.put(service, body.url, body.description, who.name)
    return JSONResponse(service_json(known))


@router.delete(
    "/{service}",
    status_code=204,
    dependencies=[needs(Right.MANAGE)],
    summary="Forget where a service lives",
)
async def delete(service: ServiceRef, ask: Ask, who: Who) -> Response:
    await ask.service_urls.remove(service, who.name)
    return Response(status_code=204)
