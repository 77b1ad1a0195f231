"""`/ui/calendar`: a month with what ran and what will, and the days on which jobs are closed."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Query, Response
from starlette.concurrency import run_in_threadpool

from noonday.api.callers import Who, needs
from noonday.api.paging import own_service
from noonday.api.services import Ask
from noonday.control.calendars import Day, Month, closed_on
from noonday.domain.access import Right
from noonday.domain.calendar import closure
from noonday.domain.errors import invalid
from noonday.domain.explain import explain_availability
from noonday.domain.job import Job
from noonday.web.heats import midnight, runs_due
from noonday.web.pages import Page, Show

router = APIRouter(include_in_schema=False)

HOME: Final = "/ui/calendar"
_LISTED: Final = 100

MonthText = Annotated[str, Query(pattern=r"^([0-9]{4}-[0-9]{2})?$")]


@router.get(HOME, dependencies=[needs(Right.READ)])
async def calendar(
    show: Show, ask: Ask, who: Who, month: MonthText = "", day: date | None = None
) -> Response:
    today = show.now.astimezone(show.reader.zone).date()
    first = _first(month) if month else (day or today).replace(day=1)
    found = await ask.calendars.month(first, show.reader.zone, own_service(who))
    return await run_in_threadpool(_page, show, found, today, day)


def _page(show: Page, found: Month, today: date, day: date | None) -> Response:
    return show.html(
        "calendar.html",
        found=found,
        today=today,
        day=_find(found, day),
        closed=closed_on(found.limited, day) if day else [],
        earlier=f"{HOME}?month={found.first - timedelta(days=1):%Y-%m}",
        later=f"{HOME}?month={found.first + timedelta(days=31):%Y-%m}",
        limited=[
            (job, explain_availability(job.timing.availability), _shut(show, job))
            for job in found.limited[:_LISTED]
        ],
        runs=_runs(show, day),
        tracks=_tracks(show, day),
    )


def _first(month: str) -> date:
    try:
        return date.fromisoformat(f"{month}-01")
    except ValueError:
        raise invalid("month", month, "is not a month such as 2027-01") from None


def _find(found: Month, day: date | None) -> Day | None:
    return next((one for week in found.weeks for one in week if one.day == day), None)


def _shut(show: Page, job: Job) -> str | None:
    why = closure(job.timing.availability, job.timing.timezone, show.now)
    return None if why is None else why.detail


def _runs(show: Page, day: date | None) -> str:
    if day is None:
        return ""
    start = midnight(day, show.reader.zone)
    return runs_due(start, midnight(day + timedelta(days=1), show.reader.zone) - start)


def _tracks(show: Page, day: date | None) -> str:
    if day is None:
        return ""
    middle = datetime.combine(day, time(12), show.reader.zone).astimezone(UTC)
    return f"/ui/timeline?at={middle:%Y-%m-%dT%H:%M:%SZ}"
