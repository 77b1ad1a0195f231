"""A month of days: what ran, what will, and on which days windows, holidays and excluded dates close jobs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from noonday.clock import Clock
from noonday.control.loads import Loads
from noonday.control.remembering import Remembered
from noonday.domain.calendar import closure, holidays_of
from noonday.domain.errors import invalid
from noonday.domain.job import Job
from noonday.store import forecasting
from noonday.store.database import Database

__all__ = ["Calendars", "Closed", "Day", "Month", "closed_on"]

_JOBS: Final = 500  # with windows or a calendar
_YEARS: Final = 10
_MIDDAY: Final = time(12)
_Closings = dict[
    date, tuple[dict[str, tuple[str, ...]], int]
]  # names of holidays and where; jobs that are closed
_Limits = tuple[list[Job], bool, _Closings]  # and whether there are more jobs


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """Counts are of one day in the reader's zone, dates of holidays in the zones of the jobs."""

    day: date
    ran: int = 0
    failed: int = 0
    planned: float = 0
    holidays: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # the name -> where it is one
    closed: int = 0  # jobs that a calendar keeps from running


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    job: Job
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Month:
    """Whole weeks from a Monday on, as calendars on the wall."""

    first: date
    weeks: tuple[tuple[Day, ...], ...]
    limited: tuple[Job, ...]  # jobs with windows or a calendar
    partial: bool  # there are more of them, or more jobs than one look takes
    rough: bool


class Calendars:
    def __init__(self, db: Database, clock: Clock, loads: Loads) -> None:
        self._db = db
        self._clock = clock
        self._loads = loads
        self._limits: Remembered[_Limits] = Remembered(db, clock)

    async def month(self, first: date, zone: ZoneInfo, service: str | None = None) -> Month:
        """The month that `first` is in."""
        now = self._clock.now()
        if abs(first.year - now.year) > _YEARS:
            raise invalid("month", f"{first:%Y-%m}", f"is more than {_YEARS} years away")
        days = _days_of(first)
        start, end = (_midnight(day, zone) for day in (days[0], days[-1] + timedelta(days=1)))
        ran: Counter[date] = Counter()
        failed: Counter[date] = Counter()
        planned: dict[date, float] = {}
        rough = partial = False
        if start < now:
            past = await self._loads.past(start, min(end, now), service)
            for at, hour in past.hours.items():
                ran[at.astimezone(zone).date()] += hour.starts
                failed[at.astimezone(zone).date()] += hour.failed
        if now < end and end - now < timedelta(days=100):
            coming = await self._loads.coming(end, service)
            rough, partial = coming.rough, coming.partial
            for at, count in coming.starts.items():
                day = at.astimezone(zone).date()
                planned[day] = planned.get(day, 0) + count
        limited, more, closings = await self._limits.get(
            (service, days[0]), lambda: self._look_at_limits(days, service)
        )
        made = [
            Day(
                day=day,
                ran=ran[day],
                failed=failed[day],
                planned=planned.get(day, 0),
                holidays=closings[day][0],
                closed=closings[day][1],
            )
            for day in days
        ]
        return Month(
            first=first.replace(day=1),
            weeks=tuple(tuple(made[place : place + 7]) for place in range(0, len(made), 7)),
            limited=tuple(limited),
            partial=partial or more,
            rough=rough,
        )

    async def _look_at_limits(self, days: list[date], service: str | None) -> _Limits:
        limited, more = await self._db.read(lambda conn: forecasting.limited(conn, _JOBS, service))
        return limited, more, await asyncio.to_thread(_closings, limited, days)


def closed_on(jobs: Iterable[Job], day: date) -> list[Closed]:
    """Jobs that their calendar keeps from running on this day, and why."""
    made: list[Closed] = []
    for job in jobs:
        noon = datetime.combine(day, _MIDDAY, ZoneInfo(job.timing.timezone)).astimezone(UTC)
        why = closure(job.timing.availability, job.timing.timezone, noon)
        if why is not None and why.by == "calendar":
            made.append(Closed(job=job, why=why.detail))
    return made


def _closings(jobs: Iterable[Job], days: Iterable[date]) -> _Closings:
    jobs = [job for job in jobs if _dated(job)]
    places = sorted({place for job in jobs if (place := job.timing.availability.calendar.holidays_of)})
    found = {}
    for day in days:
        names: dict[str, tuple[str, ...]] = {}
        for place in places:
            if name := holidays_of(place, day.year).get(day):
                names[name] = (*names.get(name, ()), place)
        found[day] = (names, len(closed_on(jobs, day)))
    return found


def _dated(job: Job) -> bool:
    calendar = job.timing.availability.calendar
    return bool(calendar.excluded_dates or calendar.holidays_of)


def _days_of(first: date) -> list[date]:
    first = first.replace(day=1)
    last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
    start = first - timedelta(days=first.weekday())
    end = last + timedelta(days=6 - last.weekday())
    return [start + timedelta(days=n) for n in range((end - start).days + 1)]


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
