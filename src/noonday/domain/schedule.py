"""When a job is due: the kinds of schedule and everything that bounds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from noonday.domain.calendar import ALWAYS, Availability


class IntervalUnit(StrEnum):
    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    DAYS = "days"


_LENGTHS = {unit: timedelta(**{unit.value: 1}) for unit in IntervalUnit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cron:
    """A cron text of 5 or 6 fields or an @alias, kept as the user wrote it (H included)."""

    expression: str
    type: Literal["cron"] = "cron"


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Every `count` units. Fixed rate from the anchor, or `after_completion` of the run before."""

    count: int
    unit: IntervalUnit = IntervalUnit.MINUTES
    after_completion: bool = False
    type: Literal["interval"] = "interval"

    @property
    def every(self) -> timedelta:
        return _LENGTHS[self.unit] * self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequency:
    """hourly, daily, weekly or monthly at a wall-clock time (the wire calls it `calendar`)."""

    frequency: Literal["hourly", "daily", "weekly", "monthly"]
    minute: int = 0
    hour: int = 0
    day: int = 1  # ISO weekday, 1 = Monday; weekly only
    day_of_month: int = 1  # monthly only; in a shorter month its last day
    type: Literal["calendar"] = "calendar"


@dataclass(frozen=True, slots=True, kw_only=True)
class Immediate:
    type: Literal["immediate"] = "immediate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    run_at: datetime
    type: Literal["once"] = "once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Runs when a webhook path or a channel matches; see trigger.py."""

    type: Literal["event"] = "event"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    type: Literal["manual"] = "manual"


Schedule = Cron | Interval | Frequency | Immediate | Once | Event | Manual


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Everything that decides when a job is due. All instants are aware and in UTC."""

    schedule: Schedule
    anchor_at: datetime  # creation, or start_at where given: fixed-rate intervals count from here
    timezone: str = "UTC"
    start_at: datetime | None = None
    end_at: datetime | None = None
    max_runs: int | None = None
    jitter: timedelta = timedelta()
    availability: Availability = field(default=ALWAYS)
