"""Wall-clock times by arithmetic: which seconds of which days of a zone, without a walk from one to the next.

On a day on which the zone's clock changes, the rules of `wallclock` decide and the times are walked.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from itertools import takewhile
from typing import Final
from zoneinfo import ZoneInfo

from noonday.domain import cron, wallclock
from noonday.domain.calendar import Outside, is_open, next_opening
from noonday.domain.instants import times
from noonday.domain.schedule import Cron, Frequency, Timing
from noonday.domain.wallclock import EARLIEST, HORIZON, SECOND, TICK

__all__ = ["Days", "Dial", "Span", "dial_of", "falls_on", "open_until", "readings", "span_of", "times_until"]

MOST: Final = 3_000  # readings of a day; a schedule with more is walked
_ONE_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Days:
    """The day, month and weekday fields of a cron text; or one day of each month, the last of a shorter."""

    fields: str
    of_month: int = 0


@dataclass(frozen=True, slots=True)
class Dial:
    """The readings of the wall clock that a schedule wants: jobs with the same one fire together."""

    days: Days
    hours: tuple[int, ...]
    minutes: tuple[int, ...]
    seconds: tuple[int, ...]
    fixed: bool  # by which rule it goes where clocks change

    @property
    def count(self) -> int:
        """Of a day."""
        return len(self.hours) * len(self.minutes) * len(self.seconds)


@dataclass(frozen=True, slots=True)
class Span:
    """A day of a zone in seconds since 1970; `even` = its clock goes through without a change."""

    start: int
    end: int
    even: bool


def dial_of(timing: Timing, key: str) -> Dial | None:
    """None for a schedule that does not go by the wall clock, or too often."""
    match timing.schedule:
        case Cron(expression=text):
            made = _of_text(cron.resolve(text, key), cron.fixed(text))
        case Frequency():
            made = _of_frequency(timing.schedule)
        case _:
            return None
    return made if made.count <= MOST else None


@lru_cache(maxsize=16_384)
def _of_text(text: str, fixed: bool) -> Dial:
    """Of a resolved text, whose first three fields are those of the time of day."""
    sim = cron.sim_of(text)
    hours, minutes, seconds = (tuple(sorted(one)) for one in (sim.hours, sim.minutes, sim.seconds))
    return Dial(Days(" ".join(text.split()[3:])), hours, minutes, seconds, fixed)


@lru_cache(maxsize=4096)
def _of_frequency(schedule: Frequency) -> Dial:
    hours = tuple(range(24)) if schedule.frequency == "hourly" else (schedule.hour,)
    match schedule.frequency:
        case "weekly":
            days = Days(f"* * {schedule.day % 7}")
        case "monthly":
            days = Days("", schedule.day_of_month)
        case _:
            days = Days("* * *")
    return Dial(days, hours, (schedule.minute,), (0,), schedule.frequency != "hourly")


@lru_cache(maxsize=16_384)
def falls_on(days: Days, day: date) -> bool:
    if days.of_month:
        return day.day == min(days.of_month, monthrange(day.year, day.month)[1])
    sim = cron.sim_of(f"0 0 {days.fields}")
    return day.month in sim.months and sim.match_day(day)


@lru_cache(maxsize=512)
def readings(dial: Dial) -> tuple[int, ...]:
    """Seconds of the day, in order."""
    minutes = [minute * 60 + second for minute in dial.minutes for second in dial.seconds]
    return tuple(hour * 3600 + rest for hour in dial.hours for rest in minutes)


@lru_cache(maxsize=8192)
def span_of(zone: ZoneInfo, day: date) -> Span:
    first, last = (datetime.combine(at, time(), zone).astimezone(UTC) for at in (day, day + _ONE_DAY))
    changed = any(
        first <= edge <= last for year in {first.year, last.year} for edge in wallclock.changes(zone, year)
    )
    return Span((first - EARLIEST) // SECOND, (last - EARLIEST) // SECOND, not changed)


def open_until(timing: Timing, key: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """As `open_times` up to `until`, and perhaps some beyond: the same instants, found sooner."""
    dial = dial_of(timing, key)

    def raw(since: datetime) -> Iterator[datetime]:
        return times_until(dial, timing, key, since, until) if dial else times(timing, key, since)

    return _open(timing, raw, after, until) if timing.availability.limited else raw(after)


def _open(
    timing: Timing, raw: Callable[[datetime], Iterator[datetime]], after: datetime, until: datetime
) -> Iterator[datetime]:
    """Wherever it is closed it goes on at the next opening; what is moved fires there, once for all of it."""
    availability, zone = timing.availability, timing.timezone
    last, moves = min(until, timing.end_at or until), availability.outside is Outside.MOVE
    since: datetime | None = after
    while since is not None:
        found, since = raw(since), None
        for at in found:
            if is_open(availability, zone, at):
                yield at
                continue
            opening = next_opening(availability, zone, at)
            if opening is not None and opening <= last:
                if moves:
                    yield opening
                since = opening if moves else opening - TICK
            break


def times_until(dial: Dial, timing: Timing, key: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """As `times`, from strictly after `after` to `until`: the same instants, found sooner."""
    after = max(after.astimezone(UTC), EARLIEST)
    if timing.start_at is not None:
        after = max(after, timing.start_at - TICK)
    until = min(until, timing.end_at or until, HORIZON - TICK).astimezone(UTC)
    zone = ZoneInfo(timing.timezone)
    # A clock that was set back over midnight shows a date again: the day before may not be over.
    day = after.astimezone(zone).date() - _ONE_DAY
    past, last = (after - EARLIEST) // SECOND, (until - EARLIEST) // SECOND
    wanted = readings(dial)
    while (span := span_of(zone, day)).start <= last:
        if span.end > past and span.even and falls_on(dial.days, day):
            first = bisect_right(wanted, past - span.start)
            for reading in wanted[first : bisect_left(wanted, last - span.start + 1)]:
                yield EARLIEST + timedelta(seconds=span.start + reading)
        elif span.end > past and not span.even:
            begin, end = (EARLIEST + timedelta(seconds=edge) - TICK for edge in (span.start, span.end))
            yield from takewhile(min(end, until).__ge__, times(timing, key, max(after, begin)))
        day += _ONE_DAY
