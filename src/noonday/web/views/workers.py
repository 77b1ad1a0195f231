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
from noonday.domain.errors import Invalid, NotFound, Problem, invalid
from noonday.domain.execution import Road
from noonday.web.forms import Fields, Sent
from noonday.web.pages import Show

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
        road = _road(sent)
        moved = await ask.engines.move(_choice(sent), road, who.name, dry_run=not sure)
    except Invalid as error:
        wrong = {one.field: one.message for one in error.problems}
        return show.html("workers_move.html", 422, sent=sent, wrong=wrong, count=0)
    except NotFound as error:
        return show.html("workers_move.html", 422, sent=sent, wrong={"jobs": str(error)}, count=0)
    if sure:
        what = "1 job" if moved.count == 1 else f"{moved.count:,} jobs"
        return show.back_to(f"{HOME}#engines", f"{what} moved to version {road.value}.")
    names = moved.names[:_SHOWN]
    return show.html("workers_move.html", sent=sent, wrong={}, count=moved.count, names=names, road=road)


def _choice(sent: Fields) -> Choice:
    which, tag = sent.text("which"), sent.text("tag")
    names = tuple(name.strip() for name in sent.text("jobs").splitlines() if name.strip())
    if which == "tag" and not tag:
        raise Invalid(Problem("tag", "write the tag of the jobs that move"))
    if which == "jobs" and not names:
        raise Invalid(Problem("jobs", "name at least one job"))
    return Choice(
        all=which == "all", tag=tag if which == "tag" else None, jobs=names if which == "jobs" else ()
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
