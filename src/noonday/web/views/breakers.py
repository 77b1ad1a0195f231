"""`/ui/breakers`: which targets are held back, since when and why; and let them through again."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.services import Ask
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.breaker import BreakerState
from noonday.domain.errors import Invalid
from noonday.web.forms import Sent
from noonday.web.pages import Show

router = APIRouter(include_in_schema=False)

HOME: Final = "/ui/breakers"
_PAGE: Final = 50

Q = Annotated[str, Query(max_length=searching.LONGEST)]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000)]


@router.get(HOME, dependencies=[needs(Right.READ)])
async def breakers(show: Show, ask: Ask, q: Q = "", offset: Offset = 0) -> Response:
    wrong = None
    terms: tuple[searching.Term, ...] = ()
    try:
        terms = searching.parse(q, search_fields.BREAKERS, show.now)
    except Invalid as error:
        wrong = error.problems[0].message
    found, parked = await ask.breakers.page(limit=_PAGE, offset=offset, terms=terms)
    shown = {"q": q, "wrong": wrong, "found": found, "parked": parked, "states": tuple(BreakerState)}
    return show.html("breakers.html", 422 if wrong else 200, **shown)


@router.post(f"{HOME}/reset", dependencies=[needs(Right.OPERATE)])
async def reset(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    seen = await ask.breakers.reset(sent.text("domain"), who.name)
    return show.back_to(HOME, f"{seen.row.domain} is called again; who waited for it goes on.")
