"""By how much a job may be moved without breaking its rhythm, and what its timing is then."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from noonday.domain import cronfields
from noonday.domain.instants import last_until
from noonday.domain.job import Job
from noonday.domain.schedule import Cron, Frequency, Interval, Timing

_MINUTE: Final = timedelta(minutes=1)
_HALF_A_DAY: Final = timedelta(hours=12)
_LONG_AGO: Final = timedelta(days=366)
_MINUTES, _HOURS = 1, 2  # places of a cron text with six fields
_SPREAD: Final = re.compile(r"H(?:\(([0-9]+)-([0-9]+)\))?")


class Held(StrEnum):
    """Why a job is left where it is."""

    SOON = "it fires too soon"
    MOVED = "it was moved a short while ago"
    LINKED = "other jobs wait for it, or it for them"
    BOUNDED = "it has a start, an end, windows or a calendar of its own"
    FIXED = "its schedule names its times"


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """The shifts that a job may be given, in minutes, each with the next time that it would then have."""

    nexts: Mapping[int, datetime]


def stays(job: Job, *, fixed_minutes: bool) -> Held | None:
    """Why a job cannot be moved at all."""
    timing = job.timing
    if job.depends_on or job.on_success_of:
        return Held.LINKED
    if timing.start_at or timing.end_at or timing.availability.limited:
        return Held.BOUNDED
    return None if any(_shifts(job, fixed_minutes)) else Held.FIXED


def room(job: Job, now: datetime, first: datetime, earliest: datetime, *, fixed_minutes: bool) -> Room:
    """Where to a job may go whose next time is `first`. Its next time must not come before `earliest`.

    An interval may go half of its period forth or back, a cron text as far as an H in its minutes or hours
    leaves open; with `fixed_minutes` a single minute counts as an H. One gap, between the last time and the
    next, is then another: at least half and at most one and a half as long as it would have been.
    """
    last = _last(job, now, first)
    gap = first - last
    shifts = (shift for shift in _shifts(job, fixed_minutes) if shift)
    after = {shift: _next(job.timing, last, first, shift * _MINUTE, now) for shift in shifts}
    low, high = max(earliest, last + gap / 2), last + gap * 3 / 2
    return Room(nexts={shift: at for shift, at in after.items() if low <= at <= high})


def shifted(job: Job, minutes: int, next_at: datetime) -> Timing:
    """The timing moved by a shift that its room has, with the next time that goes with it."""
    timing = job.timing
    match timing.schedule:
        case Interval() as interval:
            return replace(timing, anchor_at=next_at - interval.every)  # nothing is due before that
        case Cron() as cron:
            expression = _cron_shifted(cron.expression, job.id, minutes)
            return replace(timing, schedule=replace(cron, expression=expression))
        case Frequency() as hourly:
            return replace(timing, schedule=replace(hourly, minute=hourly.minute + minutes))
        case _:
            raise AssertionError(f"{timing.schedule.type} has no room")


def _shifts(job: Job, fixed_minutes: bool) -> Sequence[int]:
    match job.timing.schedule:
        case Interval() as interval if not interval.after_completion:
            half = min(interval.every / 2, _HALF_A_DAY) // _MINUTE
            return range(-half, half)
        case Cron() as cron:
            return _cron_shifts(cron.expression, job.id, fixed_minutes)
        case Frequency(frequency="hourly", minute=minute) if fixed_minutes:
            return range(-minute, 60 - minute)
        case _:
            return ()


def _last(job: Job, now: datetime, first: datetime) -> datetime:
    """The time before the next one, whether the job was there already or not."""
    schedule = job.timing.schedule
    if isinstance(schedule, Interval):
        return first - schedule.every
    return last_until(job.timing, job.id, now, since=now - _LONG_AGO) or now


def _next(timing: Timing, last: datetime, first: datetime, shift: timedelta, now: datetime) -> datetime:
    """A fixed time that moves on into the future comes once more before the next one."""
    again = not isinstance(timing.schedule, Interval) and last + shift > now
    return (last if again else first) + shift


def _cron_shifts(expression: str, key: str, fixed_minutes: bool) -> list[int]:
    minute, minutes = _open(expression, _MINUTES, key, fixed_minutes)
    hour, hours = _open(expression, _HOURS, key, False)
    return [(h - hour) * 60 + m - minute for h in hours for m in minutes]


def _open(expression: str, place: int, key: str, also_fixed: bool) -> tuple[int, Sequence[int]]:
    """What a field stands for now, and what it might stand for instead."""
    text = cronfields.split(expression)[place]
    rule = cronfields.RULES[place]
    if match := _SPREAD.fullmatch(text):
        low, high = (int(match[1]), int(match[2])) if match[1] else (rule.low, rule.spread_high)
        return int(cronfields.plain(place, text, key)), range(low, high + 1)
    if text.isdigit() and also_fixed:
        return int(text), range(rule.low, rule.high + 1)
    return 0, (0,)


def _cron_shifted(expression: str, key: str, minutes: int) -> str:
    fields = list(cronfields.split(expression))
    minute, open_minutes = _open(expression, _MINUTES, key, True)
    hour, open_hours = _open(expression, _HOURS, key, False)
    # Within an hour if the minutes alone are open; else as hours and minutes of the day.
    hours, rest = divmod(hour * 60 + minute + minutes, 60)
    if len(open_minutes) > 1:
        fields[_MINUTES] = str(rest)
    if len(open_hours) > 1:
        fields[_HOURS] = str(hours)
    plain = fields[1:] if fields[0] == "0" and len(expression.split()) != 6 else fields
    return " ".join(plain)
