"""The raw instants of a schedule within its bounds: the arithmetic below `occurrences`."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from itertools import islice, takewhile
from typing import assert_never
from zoneinfo import ZoneInfo

from noonday.domain import wallclock
from noonday.domain.cron import cron_after, cron_times
from noonday.domain.schedule import (
    Cron,
    Event,
    Frequency,
    Immediate,
    Interval,
    Manual,
    Once,
    Schedule,
    Timing,
)
from noonday.domain.wallclock import EARLIEST, HORIZON, SECOND, TICK


def next_after(timing: Timing, key: str, after: datetime) -> datetime | None:
    """The first raw instant strictly after `after`, whatever windows, calendar, max_runs and jitter say."""
    if not isinstance(timing.schedule, Cron):
        return next(times(timing, key, after), None)
    bounds = _bounds(timing, after)
    if bounds is None:
        return None
    due = cron_after(timing.schedule.expression, key, timing.timezone, bounds[0])
    return due if due is not None and due <= bounds[1] else None


def times(timing: Timing, key: str, after: datetime) -> Iterator[datetime]:
    """The raw instants strictly after `after`, within start_at and end_at (both inclusive), in order."""
    bounds = _bounds(timing, after)
    if bounds is None:
        return iter(())
    after, end = bounds
    return takewhile(end.__ge__, _unbounded(timing, timing.schedule, key, after))


def _bounds(timing: Timing, after: datetime) -> tuple[datetime, datetime] | None:
    """What lies strictly after the first and not after the second; None if nothing does."""
    after = max(after.astimezone(UTC), EARLIEST)
    if timing.start_at is not None:
        after = max(after, timing.start_at.astimezone(UTC) - TICK)
    end = HORIZON - TICK if timing.end_at is None else min(timing.end_at, HORIZON - TICK)
    return None if after >= end else (after, end)


def count_between(
    timing: Timing, key: str, first: datetime, last: datetime, cap: int = 1000
) -> tuple[int, bool]:
    """How many raw instants lie in [first, last], and if that is exact: all but intervals stop at `cap`."""
    if isinstance(timing.schedule, Interval) and not timing.schedule.after_completion:
        until, before = (_count_until(timing, timing.schedule, end) for end in (last, first - TICK))
        return max(until - before, 0), True
    found = takewhile(lambda due: due <= last, times(timing, key, first - TICK))
    count = sum(1 for _ in islice(found, cap + 1))
    return min(count, cap), count <= cap


def last_until(timing: Timing, key: str, until: datetime, since: datetime) -> datetime | None:
    """The latest raw instant in (since, until]; found in some dozens of steps, however many there are."""
    if isinstance(timing.schedule, Interval) and not timing.schedule.after_completion:
        count = _count_until(timing, timing.schedule, until)
        every = timing.schedule.every
        due = first_of(timing, every).astimezone(UTC) + (count - 1) * every if count else since
        return due if due > since else None

    def found(after: datetime) -> datetime | None:
        due = next_after(timing, key, after)
        return due if due is not None and due <= until else None

    step, none_after = TICK, until
    while (near := found(max(until - step, since))) is None:
        if until - step <= since:
            return None
        none_after, step = until - step, max(step * 4, SECOND)
    # Now `near` is an instant in range and nothing is due after `none_after`: halve what lies between.
    while (later := found(near)) is not None:
        near = later
        middle = near + (none_after - near) / 2
        if (beyond := found(middle)) is not None:
            near = beyond
        else:
            none_after = middle
    return near


def _unbounded(timing: Timing, schedule: Schedule, key: str, after: datetime) -> Iterator[datetime]:
    match schedule:
        case Cron():
            return cron_times(schedule.expression, key, timing.timezone, after)
        case Frequency():
            return _frequency(schedule, timing.timezone, after)
        case Interval():
            return _interval(timing, schedule, after)
        case Once():
            return _single(schedule.run_at, after)
        case Immediate():
            return _single(max(timing.anchor_at, timing.start_at or timing.anchor_at), after)
        case Event() | Manual():
            return iter(())
        case _:
            assert_never(schedule)


def _single(instant: datetime, after: datetime) -> Iterator[datetime]:
    if instant > after:
        yield instant.astimezone(UTC)


def first_of(timing: Timing, every: timedelta) -> datetime:
    """A given start is itself due; the anchor (creation) is not: the first run comes one interval later."""
    return timing.anchor_at + every if timing.start_at is None else timing.start_at


def _interval(timing: Timing, schedule: Interval, after: datetime) -> Iterator[datetime]:
    every = schedule.every
    try:
        due = first_of(timing, every).astimezone(UTC)
        if schedule.after_completion:
            yield from _single(due, after)
            return
        if due <= after:
            due += ((after - due) // every + 1) * every
        while True:
            yield due
            due += every
    except OverflowError:
        return


def _count_until(timing: Timing, schedule: Interval, last: datetime) -> int:
    """How many instants of a fixed rate there are up to `last` (inclusive)."""
    last = min(last, timing.end_at or last, HORIZON - TICK)
    return max((last - first_of(timing, schedule.every)) // schedule.every + 1, 0)


def _frequency(schedule: Frequency, zone: str, after: datetime) -> Iterator[datetime]:
    match schedule.frequency:
        case "hourly":
            return cron_times(f"{schedule.minute} * * * *", "", zone, after)
        case "daily":
            return cron_times(f"{schedule.minute} {schedule.hour} * * *", "", zone, after)
        case "weekly":
            return cron_times(f"{schedule.minute} {schedule.hour} * * {schedule.day}", "", zone, after)
        case "monthly":
            return wallclock.once(lambda start: _monthly_walls(schedule, start), ZoneInfo(zone), after)
        case _:
            assert_never(schedule.frequency)


def _monthly_walls(schedule: Frequency, start: datetime) -> Iterator[datetime]:
    year, month = start.year, start.month
    while year < HORIZON.year:
        day = min(schedule.day_of_month, monthrange(year, month)[1])
        wall = datetime.combine(date(year, month, day), time(schedule.hour, schedule.minute))
        if wall > start:
            yield wall
        year, month = (year, month + 1) if month < 12 else (year + 1, 1)
