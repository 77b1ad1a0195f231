"""`/api/v2/breakers`: which domains are held back, and let them through again."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Path, Query, Response
from fastapi.responses import JSONResponse
from pydantic import Field

from noonday.api.answers import Router
from noonday.api.breakers import BreakerPage, BreakerShape, breaker_json
from noonday.api.callers import Who, needs
from noonday.api.paging import Counting
from noonday.api.services import Ask, v2_is_on
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.breaker import BreakerState

router = Router(prefix="/api/v2/breakers", tags=["breakers"], dependencies=[Depends(v2_is_on)])

Domain = Annotated[
    str, Path(description="the host, with its port where that is not the scheme's own", max_length=300)
]

_SEARCH = "a search such as `state:open domain:*.example.com trips:>3`; a plain word is a part of the domain"


class BreakerQuery(Counting):
    state: BreakerState | None = None
    q: Annotated[str, Field(max_length=searching.LONGEST, description=_SEARCH)] | None = None


@router.get(
    "",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": BreakerPage}},
    summary="Domains that failed, those that are held back first; `parked` counts who waits for them",
)
async def find(query: Annotated[BreakerQuery, Query()], ask: Ask) -> Response:
    terms = searching.parse(query.q or "", search_fields.BREAKERS, ask.clock.now())
    page, parked = await ask.breakers.page(query.state, limit=query.limit, offset=query.offset, terms=terms)
    shown = [breaker_json(seen) for seen in page.items]
    return JSONResponse({"breakers": shown, "parked": parked, **page.bounds})


@router.get(
    "/{domain}",
    dependencies=[needs(Right.READ)],
    responses={200: {"model": BreakerShape}},
    summary="The breaker of one domain",
)
async def read(domain: Domain, ask: Ask) -> Response:
    return JSONResponse(breaker_json(await ask.breakers.get(domain)))


@router.post(
    "/{domain}/reset",
    dependencies=[needs(Right.OPERATE)],
    responses={200: {"model": BreakerShape}},
    summary="Close it: who waited for it goes on at once",
)
async def reset(domain: Domain, ask: Ask, who: Who) -> Response:
    return JSONResponse(breaker_json(await ask.breakers.reset(domain, who.name)))
