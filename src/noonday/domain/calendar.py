"""Times of the week and dates on which a job may or may not run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from noonday.domain import wallclock

LOOK_AHEAD_DAYS = 3660  # no opening within ten years counts as never open again
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Outside(StrEnum):
    """What becomes of a due time outside the windows or on an excluded date."""

    SKIP = "skip"
    MOVE = "move"  # to the next opening


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """An opening on some ISO weekdays (1 = Monday) in a job's zone; `end` before `start` passes midnight."""

    days: frozenset[int]
    start: time
    end: time  # exclusive; 00:00 means midnight at the end of the day


@dataclass(frozen=True, slots=True, kw_only=True)
class Calendar:
    """Dates, in the job's zone, on which a job does not run."""

    excluded_dates: frozenset[date] = frozenset()
    holidays_of: str | None = None  # a country such as "DE", or with a subdivision "DE-BY"


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    windows: tuple[Window, ...] = ()  # none = open at all times
    calendar: Calendar = Calendar()
    outside: Outside = Outside.SKIP

    @property
    def limited(self) -> bool:
        return bool(self.windows or self.calendar.excluded_dates or self.calendar.holidays_of)


ALWAYS = Availability()


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """Why a job may not run at some instant."""

    by: Literal["window", "calendar"]
    detail: str


def is_open(availability: Availability, zone: str, instant: datetime) -> bool:
    """May a job of this zone run at this instant?"""
    return closure(availability, zone, instant) is None


def closure(availability: Availability, zone: str, instant: datetime) -> Closure | None:
    """What keeps a job from running at this instant; None = it is open."""
    if not availability.limited:
        return None
    local = instant.astimezone(ZoneInfo(zone))
    if why := _excluded(availability.calendar, local.date()):
        return Closure(by="calendar", detail=why)
    if availability.windows and not any(_within(window, local) for window in availability.windows):
        return Closure(
            by="window", detail=f"{WEEKDAYS[local.weekday()]} {local:%H:%M} is outside the windows"
        )
    return None


def next_opening(availability: Availability, zone: str, instant: datetime) -> datetime | None:
    """The first instant from `instant` on at which it is open; None if there is none within ten years."""
    if instant >= wallclock.HORIZON:
        return None
    if is_open(availability, zone, instant):
        return instant
    where = ZoneInfo(zone)
    today = instant.astimezone(where).date()
    # A clock set back over midnight shows a date again: the days around the first one are looked at together.
    batch = [today + timedelta(days=days) for days in (-1, 0, 1)]
    for _ in range(LOOK_AHEAD_DAYS):
        turns = sorted(turn for day in batch for turn in _turns(availability, where, day) if turn > instant)
        for turn in turns:
            if is_open(availability, zone, turn):
                return turn if turn < wallclock.HORIZON else None
        if batch[-1].year >= wallclock.HORIZON.year:
            return None
        batch = [batch[-1] + timedelta(days=1)]
    return None


def _turns(availability: Availability, zone: ZoneInfo, day: date) -> Iterator[datetime]:
    """Every instant of a day at which the job may turn from closed to open."""
    if _excluded(availability.calendar, day):
        return
    for start in {time(), *(window.start for window in availability.windows)}:
        for fold in (0, 1):
            yield datetime.combine(day, start.replace(fold=fold), tzinfo=zone).astimezone(UTC)
    for year in {day.year, (day - timedelta(days=1)).year, (day + timedelta(days=1)).year}:
        yield from (edge for edge in wallclock.changes(zone, year) if edge.astimezone(zone).date() == day)


def _within(window: Window, local: datetime) -> bool:
    now, today = local.time(), local.isoweekday()
    if window.end > window.start:
        return today in window.days and window.start <= now < window.end
    if today in window.days and now >= window.start:
        return True
    yesterday = (today - 2) % 7 + 1
    return yesterday in window.days and now < window.end


def _excluded(calendar: Calendar, day: date) -> str | None:
    if day in calendar.excluded_dates:
        return f"{day} is an excluded date"
    if calendar.holidays_of and (name := holidays_of(calendar.holidays_of, day.year).get(day)):
        return f"{day} is a public holiday of {calendar.holidays_of}: {name}"
    return None


@lru_cache(maxsize=1024)
def holidays_of(place: str, year: int) -> Mapping[date, str]:
    """The public holidays of a country (`DE`) or a part of it (`DE-BY`); KeyError for an unknown place."""
    import holidays  # noqa: PLC0415 - 5 MB that only jobs with holidays should load

    country, _, part = place.partition("-")
    if country not in holidays.list_supported_countries():
        raise KeyError(place)
    try:
        return dict(holidays.country_holidays(country, subdiv=part or None, years=year, language="en_US"))
    except NotImplementedError as error:
        raise KeyError(place) from error
