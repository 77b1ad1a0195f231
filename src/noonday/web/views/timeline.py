"""`/ui/timeline`: past, running and coming runs, a track for each job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field
from starlette.concurrency import run_in_threadpool

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.timeline import MOST_TRACKS, Drawn, Grouping, Timeline, Wanted
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.errors import Invalid
from noonday.store.jobs import JobFilter
from noonday.web import lines
from noonday.web.heats import instant
from noonday.web.pages import Page, Show
from noonday.web.zones import Moment

router = APIRouter(include_in_schema=False)

_SPANS: Final = {
    "1h": timedelta(hours=1),
    "3h": timedelta(hours=3),
    "6h": timedelta(hours=6),
    "12h": timedelta(hours=12),
    "24h": timedelta(hours=24),
    "3d": timedelta(days=3),
    "7d": timedelta(days=7),
}
HOME: Final = "/ui/timeline"

Span = Literal["1h", "3h", "6h", "12h", "24h", "3d", "7d"]


class Choices(BaseModel):
    """What the address says, and addresses that say something else."""

    q: Annotated[str, Field(max_length=searching.LONGEST)] = ""
    span: Span = "24h"
    at: Moment | None = None  # the middle of the span; now, unless given
    group: Grouping = Grouping.SERVICE
    busy: bool = False
    limit: Annotated[int, Field(ge=1, le=MOST_TRACKS)] = 100
    offset: Annotated[int, Field(ge=0, le=1_000_000_000)] = 0

    def address(self, **changes: object) -> str:
        wanted = self.model_copy(update=changes).model_dump(exclude_defaults=True)
        given = {name: instant(value) if name == "at" else value for name, value in wanted.items() if value}
        return f"{HOME}?{urlencode(given)}" if given else HOME

    @property
    def length(self) -> timedelta:
        return _SPANS[self.span]

    def middle(self, show: Page) -> datetime:
        """A time without an offset is meant in the reader's zone."""
        if self.at is None:
            return show.now
        return (self.at if self.at.tzinfo else self.at.replace(tzinfo=show.reader.zone)).astimezone(UTC)


@router.get(HOME, dependencies=[needs(Right.READ)])
async def timeline(show: Show, ask: Ask, who: Who, chosen: Annotated[Choices, Query()]) -> Response:
    wrong = None
    terms: tuple[searching.Term, ...] = ()
    try:
        terms = searching.parse(chosen.q, search_fields.JOBS, show.now)
    except Invalid as error:
        wrong = error.problems[0].message
    middle = chosen.middle(show)
    found = await ask.timelines.look(
        Wanted(
            since=middle - chosen.length / 2,
            until=middle + chosen.length / 2,
            filter=JobFilter(terms=terms, service=own_service(who)),
            group=chosen.group,
            limit=chosen.limit,
            offset=chosen.offset,
        )
    )
    return await run_in_threadpool(_page, show, chosen, found, wrong)


def _page(show: Page, chosen: Choices, found: Timeline, wrong: str | None) -> Response:
    shown = [one for one in found.tracks if one.line.marks or not chosen.busy]
    middle = found.since + chosen.length / 2
    return show.html(
        "timeline.html",
        422 if wrong else 200,
        chosen=chosen,
        wrong=wrong,
        found=found,
        tracks=shown,
        spans=list(_SPANS),
        closer=_zoomed(chosen, -1),
        wider=_zoomed(chosen, 1),
        earlier=chosen.address(at=middle - chosen.length / 2),
        later=chosen.address(at=middle + chosen.length / 2),
        marks={one.track.job_id: lines.paths(one.line, found.since, found.until) for one in shown},
        summary=lines.summary,
        now_share=lines.share(found.now, found.since, found.until),
        ticks=lines.ticks(found.since, found.until, show.reader.zone),
        data=_data(found, shown),
    )


def _zoomed(chosen: Choices, steps: int) -> str | None:
    """The address of the next span that is shorter or longer; None at the end."""
    place = list(_SPANS).index(chosen.span) + steps
    return chosen.address(span=list(_SPANS)[place]) if 0 <= place < len(_SPANS) else None


def _data(found: Timeline, shown: list[Drawn]) -> dict[str, object]:
    return {
        "since": found.since.timestamp(),
        "span": (found.until - found.since).total_seconds(),
        "words": lines.WORDS,
        "tracks": lines.data_of(shown, found.since),
    }
