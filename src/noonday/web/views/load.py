"""`/ui/load`: how full each hour of the week was and will be, the quietest slots, and spreading the load."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.forecast import Forecast
from noonday.control.loads import Coming, Past
from noonday.control.rebalance import Distribution, Wish
from noonday.domain.access import Right
from noonday.domain.explain import explain
from noonday.domain.heat import HOUR, hour_of, quietest
from noonday.domain.load import SLOTS
from noonday.domain.rebalance import Move
from noonday.web.forms import Fields, Sent
from noonday.web.heats import Row, heat_rows, instant, midnight, runs_due
from noonday.web.pages import Page, Show
from noonday.web.zones import Moment

router = APIRouter(include_in_schema=False)

HOME: Final = "/ui/load"
_DAYS: Final = 7
_QUIET: Final = 6
_LISTED: Final = 200

Show7x24 = Literal["starts", "busy", "failed"]
Most = Annotated[int, Query(ge=1, le=1000)]


@dataclass(frozen=True, slots=True)
class _Day:
    """Both halves of the map: seven days up to now, and seven from now on."""

    since: datetime
    now: datetime
    until: datetime


@router.get(HOME, dependencies=[needs(Right.READ)])
async def load(
    show: Show, ask: Ask, who: Who, shown: Annotated[Show7x24, Query(alias="show")] = "starts"
) -> Response:
    service, week = own_service(who), _week(show)
    past = await ask.loads.past(week.since, week.now, service)
    coming = await ask.loads.coming(week.until, service)
    today = await ask.rebalancing.distribution(15, service)
    return await run_in_threadpool(_page, show, week, past, coming, today, shown)


def _page(
    show: Page, week: _Day, past: Past, coming: Coming, today: Distribution, shown: Show7x24
) -> Response:
    return show.html(
        "load.html",
        show=shown,
        before=_before(show, week, past, shown),
        after=_after(show, week, coming, shown),
        failed=sum(hour.failed for hour in past.hours.values()),
        ran=sum(hour.starts for hour in past.hours.values()),
        coming=coming,
        planned=sum(coming.starts.values()),
        today=today,
        quiet=[
            (at, starts, f"{HOME}/hour?at={instant(hour_of(at))}")
            for at, starts in (quietest(today.load, _QUIET) if today.load.total else [])
        ],
        peak=max(today.load.starts),
        hour_now=hour_of(show.now),
    )


@router.get(f"{HOME}/hour", dependencies=[needs(Right.READ)])
async def hour(show: Show, ask: Ask, who: Who, at: Moment | None = None) -> Response:
    """What is planned for one hour, by the minute; for this one, unless another is named."""
    at = at or show.now
    since = hour_of(at if at.tzinfo else at.replace(tzinfo=show.reader.zone))
    found = await ask.forecasts.overall(
        since,
        max(since + HOUR - timedelta(microseconds=1), show.now),
        limit=_LISTED,
        service=own_service(who),
    )
    minutes = await run_in_threadpool(_by_minute, found, since)
    return show.html(
        "load_hour.html",
        since=since,
        found=found,
        minutes=minutes,
        peak=max(minutes),
        past=runs_due(since, HOUR) if since <= show.now else None,
        earlier=f"{HOME}/hour?at={instant(since - HOUR)}",
        later=f"{HOME}/hour?at={instant(since + HOUR)}",
        tracks=f"/ui/timeline?span=1h&at={instant(since + HOUR / 2)}",
    )


@router.get(f"{HOME}/rebalance", dependencies=[needs(Right.OPERATE)])
async def preview(
    show: Show, ask: Ask, slot_minutes: int = 15, fixed_minutes: bool = False, most: Most = 100
) -> Response:
    wish = Wish(slot_minutes=slot_minutes, fixed_minutes=fixed_minutes, most=most)
    found = await ask.rebalancing.preview(wish)
    proposal = found.proposal
    words = await run_in_threadpool(lambda: [_words(move) for move in proposal.moves])
    tall = max(*proposal.before.starts, *proposal.after.starts, 1.0)
    return show.html(
        "rebalance.html", wish=wish, found=found, proposal=proposal, words=words, tall=tall, slots=SLOTS
    )


@router.post(f"{HOME}/rebalance", dependencies=[needs(Right.MANAGE)])
async def rebalance(show: Show, ask: Ask, who: Who, sent: Sent) -> Response:
    done = await ask.rebalancing.apply(_wish(sent), who.name)
    moved, refused = len(done.moved), len(done.refused)
    note = (
        f"{moved} {'job was' if moved == 1 else 'jobs were'} moved; the spread is {done.after.score:.2f} now."
    )
    if refused:
        note += f" {refused} stayed, because somebody changed them meanwhile."
    return show.back_to(HOME, note)


def _wish(sent: Fields) -> Wish:
    def number(name: str, otherwise: int) -> int:
        text = sent.text(name)
        return int(text) if text.isdecimal() and len(text) < 5 else otherwise

    return Wish(
        slot_minutes=number("slot_minutes", 15),
        fixed_minutes=sent.checked("fixed_minutes"),
        most=min(max(number("most", 100), 1), 1000),
    )


def _week(show: Page) -> _Day:
    zone = show.reader.zone
    today = show.now.astimezone(zone).date()
    return _Day(
        hour_of(midnight(today - timedelta(days=_DAYS - 1), zone)),
        show.now,
        hour_of(midnight(today + timedelta(days=_DAYS), zone)),
    )


def _before(show: Page, week: _Day, past: Past, shown: Show7x24) -> list[Row]:
    values = {
        at: float({"starts": hour.starts, "failed": hour.failed, "busy": round(hour.busy / HOUR, 1)}[shown])
        for at, hour in past.hours.items()
    }
    only = "status:failed" if shown == "failed" else ""
    zone = show.reader.zone
    return heat_rows(values, week.since, week.now, zone, lambda at: runs_due(at, HOUR, only))


def _after(show: Page, week: _Day, coming: Coming, shown: Show7x24) -> list[Row]:
    if shown == "busy":
        values = {at: round(busy / HOUR, 1) for at, busy in coming.busy.items()}
    else:
        values = {at: round(count, 1) for at, count in coming.starts.items()}
    first, zone = hour_of(show.now), show.reader.zone
    return heat_rows(values, first, week.until, zone, lambda at: f"{HOME}/hour?at={instant(at)}")


def _by_minute(found: Forecast, since: datetime) -> list[int]:
    minutes = [0] * 60
    for run in found.runs:
        place = (run.at - since) // timedelta(minutes=1)
        if 0 <= place < 60:
            minutes[place] += 1
    return minutes


def _words(move: Move) -> tuple[Move, str, str]:
    return move, explain(move.job.timing, move.job.id), explain(move.timing, move.job.id)
