"""When a job is due: raw instants of every kind of schedule, and what windows and calendars make of them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice

from noonday.domain.calendar import Outside, closure, next_opening
from noonday.domain.checks import check
from noonday.domain.execution import SkipReason
from noonday.domain.instants import count_between, last_until, next_after, times
from noonday.domain.schedule import Timing
from noonday.domain.wallclock import TICK

__all__ = [
    "Occurrence",
    "check",
    "count_between",
    "last_until",
    "next_after",
    "occurrences",
    "open_times",
    "spread",
    "times",
    "upcoming",
]

CLOSED_IN_A_ROW = 2000  # how many closings a search for open times passes before it gives up
CLOSED_FOR = timedelta(days=3660)


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """A raw instant with the verdict of windows and calendar. Jitter is not in it: see `spread`."""

    due_at: datetime
    available_at: datetime  # later than due_at if it is moved to the next opening
    skip: SkipReason | None = None
    detail: str | None = None
    reopens_at: datetime | None = (
        None  # of a skip: the next that may pass is not before; None = perhaps never
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Closed:
    """A stretch until an opening, and the one instant that stands for all of it where they are moved."""

    opening: datetime | None
    mover: datetime | None


def occurrences(timing: Timing, key: str, after: datetime) -> Iterator[Occurrence]:
    """The raw instants strictly after `after`, in order, each with its verdict.

    Where instants outside are moved, only the last before an opening is; the others are skipped, since one
    run at the opening covers them all. If an instant lies on the opening itself, it is the one.
    """
    availability, zone = timing.availability, timing.timezone
    closed = _Closed(opening=after, mover=None)
    for due in times(timing, key, after):
        why = closure(availability, zone, due)
        if why is None:
            yield Occurrence(due_at=due, available_at=due)
            continue
        if closed.opening is not None and due >= closed.opening:
            closed = _closed(timing, key, due)
        if closed.opening is not None and due == closed.mover:
            yield Occurrence(due_at=due, available_at=closed.opening, detail=f"moved: {why.detail}")
            continue
        detail = f"{why.detail}; covered by {_utc(closed.mover)}" if closed.mover else why.detail
        yield Occurrence(
            due_at=due,
            available_at=due,
            skip=SkipReason(why.by),
            detail=detail,
            reopens_at=closed.mover or closed.opening,
        )


def spread(timing: Timing, key: str, due_at: datetime) -> timedelta:
    """How much later than due this instant runs: between nothing and the jitter, always the same for it."""
    if not timing.jitter:
        return timedelta()
    digest = hashlib.sha256(f"{key}\0{due_at.astimezone(UTC).isoformat()}".encode()).digest()
    return TICK * (int.from_bytes(digest[:8], "big") % (timing.jitter // TICK + 1))


def upcoming(timing: Timing, key: str, after: datetime, count: int, fired: int = 0) -> list[datetime]:
    """The next times at which it will really fire, at most `count`.

    Fewer if max_runs (less those `fired`), end_at or closings that seem to last for ever end the list.
    """
    wanted = count if timing.max_runs is None else min(count, timing.max_runs - fired)
    if wanted <= 0:
        return []
    return list(islice(open_times(timing, key, after), wanted))


def open_times(timing: Timing, key: str, after: datetime) -> Iterator[datetime]:
    """The times after `after` that windows and calendar let pass, whatever max_runs and jitter say."""
    return _open_times(timing, key, after) if timing.availability.limited else times(timing, key, after)


def _open_times(timing: Timing, key: str, after: datetime) -> Iterator[datetime]:
    skipped: list[datetime] = []  # the starts of closed stretches since the last open time
    stream = occurrences(timing, key, after)
    while (occurrence := next(stream, None)) is not None:
        if occurrence.skip is None:
            skipped.clear()
            yield occurrence.available_at
            continue
        skipped.append(occurrence.due_at)
        reopens_at = occurrence.reopens_at
        if reopens_at is None or len(skipped) > CLOSED_IN_A_ROW or reopens_at - skipped[0] > CLOSED_FOR:
            return
        stream = occurrences(timing, key, reopens_at - TICK)


def _closed(timing: Timing, key: str, due: datetime) -> _Closed:
    opening = next_opening(timing.availability, timing.timezone, due)
    if opening is None or timing.availability.outside is Outside.SKIP:
        return _Closed(opening=opening, mover=None)
    if timing.end_at is not None and opening > timing.end_at:
        return _Closed(opening=None, mover=None)
    return _Closed(opening=opening, mover=last_until(timing, key, opening, since=due - TICK))


def _utc(instant: datetime | None) -> str:
    return "" if instant is None else f"the one due at {instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
