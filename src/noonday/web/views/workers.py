"""`/ui/workers`: instances, their slots, the lanes and the two engines; drain, resume and move."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.engines import Choice
from noonday.control.instances import Peer
from noonday.domain.access import Right
from noonday.domain.errors import Invalid, invalid
from noonday.domain.execution import Road
from noonday.web.forms import Fields, Sent
from noonday.web.pages import Page, Show

router = APIRouter(include_in_schema=False)

HOME: Final = "/ui/workers"
_SHOWN: Final = 50  # names of a preview

Hours = Annotated[float, Query(gt=0, le=24 * 31)]


@router.get(HOME, dependencies=[needs(Right.READ)])
async def workers(show: Show, ask: Ask, who: Who, hours: Hours = 1.0) -> Response:
    roster, slots, lanes, engines = await asyncio.gather(
        ask.instances.roster(),
        ask.instances.workers(),
        ask.overview.lanes(own_service(who)),
        ask.engines.compare(hours),
    )
    return show.html("workers.html", roster=roster, slots=slots, lanes=lanes, engines=engines, Road=Road)


@router.get(f"{HOME}/drain", dependencies=[needs(Right.MANAGE)])
async def before_draining(show: Show, ask: Ask) -> Response:
    """Asked before all workers of all instances stop taking work."""
    return show.html("workers_drain.html", slots=await ask.instances.workers())


@router.post(f"{HOME}/drain", dependencies=[needs(Right.MANAGE)])
async def drain(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    peers = await ask.instances.drain(sent.text("instance") or None, who.name)
    return show.back_to(HOME, f"{_named(peers)} finish what they run and take nothing new.")


@router.post(f"{HOME}/resume", dependencies=[needs(Right.MANAGE)])
async def resume(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    peers = await ask.instances.resume(sent.text("instance") or None, who.name)
    return show.back_to(HOME, f"{_named(peers)} take work again.")


@router.post(f"{HOME}/move", dependencies=[needs(Right.MANAGE)])
async def move(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    """First what would move, and after a second press what has moved."""
    sure = sent.checked("sure")
    try:
        choice, road = _choice(sent), _road(sent)
    except Invalid as error:
        return _asked(show, sent, wrong=error.problems[0].message)
    moved = await ask.engines.move(choice, road, who.name, dry_run=not sure)
    if sure:
        what = "1 job" if moved.count == 1 else f"{moved.count:,} jobs"
        return show.back_to(f"{HOME}#engines", f"{what} moved to version {road.value}.")
    return _asked(show, sent, count=moved.count, names=moved.names[:_SHOWN], road=road)


def _asked(
    show: Page,
    sent: Fields,
    *,
    wrong: str | None = None,
    count: int = 0,
    names: tuple[str, ...] = (),
    road: Road | None = None,
) -> Response:
    shown = {"wrong": wrong, "count": count, "names": names, "road": road}
    return show.html("workers_move.html", 422 if wrong else 200, sent=sent, **shown)


def _choice(sent: Fields) -> Choice:
    names = tuple(name for name in sent.text("jobs").splitlines() if name.strip())
    which = sent.text("which")
    return Choice(
        all=which == "all",
        tag=sent.text("tag") or None if which == "tag" else None,
        jobs=tuple(map(str.strip, names)) if which == "jobs" else (),
    )


def _road(sent: Fields) -> Road:
    try:
        return Road(int(sent.text("to")))
    except ValueError:
        raise invalid("to", sent.text("to"), "is neither version 1 nor 2") from None


def _named(peers: tuple[Peer, ...]) -> str:
    if len(peers) == 1:
        return f"The workers of {peers[0].instance.id}"
    return f"The workers of {len(peers):,} instances"
