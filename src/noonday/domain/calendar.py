"""Times of the week and dates on which a job may or may not run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, time
from enum import StrEnum


class Outside(StrEnum):
    """What becomes of a due time outside the windows or on an excluded date."""

    SKIP = "skip"
    MOVE = "move"  # to the next opening


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """An opening on some ISO weekdays (1 = Monday) in the job's zone; `end` before `start` passes midnight."""

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


ALWAYS = Availability()
