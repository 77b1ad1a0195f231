"""A schedule before it is saved: its words and next times, and what clocks and calendars do to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import Final
from zoneinfo import ZoneInfo

from noonday.control.explain import preview
from noonday.domain import cronfields
from noonday.domain.occurrences import occurrences
from noonday.domain.schedule import Cron, Timing
from noonday.domain.wallclock import changes, offset_at

__all__ = ["Explained", "Left", "Moment", "explained"]

_LOOKED_AT: Final = 2000  # due times among which those that are left out are looked for
_SHOWN: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A time at which it will run, and what is special about it."""

    at: datetime
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A time at which it would be due, and why it will not run."""

    at: datetime
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    words: str
    moments: tuple[Moment, ...]
    left: tuple[Left, ...] = ()  # before the last of the moments
    spread: bool = False  # H: by the id that a job gets when it is saved


def explained(timing: Timing, key: str, count: int, after: datetime) -> Explained:
    """Refuses a wrong schedule with Invalid. `key` is the job's id, nothing for one that has none yet."""
    found = preview(timing, key, count, after)
    zone = ZoneInfo(timing.timezone)
    return Explained(
        words=found.words,
        moments=tuple(
            Moment(at=at, note=_note(zone, at, before))
            for before, at in zip((after, *found.times), found.times, strict=False)
        ),
        left=_left(timing, key, after, found.times),
        spread=not key and _spreads(timing),
    )


def _spreads(timing: Timing) -> bool:
    if not isinstance(timing.schedule, Cron):
        return False
    return any(cronfields.spreads(text) for text in cronfields.split(timing.schedule.expression))


def _left(timing: Timing, key: str, after: datetime, times: tuple[datetime, ...]) -> tuple[Left, ...]:
    if not timing.availability.limited:
        return ()
    until = times[-1] if times else after + timedelta(days=366)
    seen = takewhile(lambda one: one.due_at <= until, occurrences(timing, key, after))
    skipped = (one for one in islice(seen, _LOOKED_AT) if one.skip is not None)
    return tuple(Left(at=one.due_at, why=one.detail or "") for one in islice(skipped, _SHOWN))


def _note(zone: ZoneInfo, at: datetime, before: datetime) -> str:
    """The change of the clocks that this run meets, if any."""
    moved = offset_at(zone, at) - offset_at(zone, before)
    if at in changes(zone, at.year) and moved > timedelta():
        return "the clocks go forward at this moment, so that its time of day may be skipped"
    local = at.astimezone(zone)
    if local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset():
        which = "second" if local.fold else "first"
        return f"the clocks go back: this time of day comes twice, and this is the {which}"
    if moved:
        way = "forward" if moved > timedelta() else "back"
        return (
            f"the clocks have gone {way} by {abs(moved) // timedelta(minutes=1)} minutes since the run before"
        )
    return ""
