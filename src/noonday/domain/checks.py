"""Everything that can be wrong with a timing, found before it is saved and said in the words of the wire."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from typing import assert_never
from zoneinfo import ZoneInfo, available_timezones

from noonday.domain.calendar import ALWAYS, Availability, Calendar, Outside, Window, holidays_of
from noonday.domain.cron import CronError, check_cron
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.schedule import (
    Cron,
    Event,
    Frequency,
    Immediate,
    Interval,
    IntervalUnit,
    Manual,
    Once,
    Schedule,
    Timing,
)
from noonday.domain.wallclock import EARLIEST, HORIZON

MAX_COUNT = 2**31 - 1  # what an integer column of the store holds
MAX_EVERY = timedelta(days=36_525)
MAX_JITTER = timedelta(days=1)
MAX_WINDOWS = 100
MAX_EXCLUDED_DATES = 5000

_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9_+\-/]{0,63}")
_NOT_ZONES = ("posix/", "right/", "posixrules", "localtime", "Factory")

Problems = Iterator[Problem]


def check(timing: Timing) -> None:
    """Raises Invalid with every problem there is; the fields are named as on the wire."""
    problems = [
        *_zone(timing.timezone),
        *_schedule(timing.schedule),
        *_bounds(timing),
        *(_availability(timing.availability) if timing.availability != ALWAYS else ()),
    ]
    if problems:
        raise Invalid(*problems)


def _schedule(schedule: Schedule) -> Problems:
    match schedule:
        case Cron():
            return _cron(schedule.expression)
        case Interval():
            return _interval(schedule)
        case Frequency():
            return _frequency(schedule)
        case Once():
            return _instant("run_at", schedule.run_at)
        case Immediate() | Event() | Manual():
            return iter(())
        case _:
            assert_never(schedule)


def _cron(expression: str) -> Problems:
    why = _wrong_cron(expression) if isinstance(expression, str) else "a cron text must be a string"
    if why is not None:
        yield _problem("cron_expression", expression, f"is no schedule: {why}")


@lru_cache(maxsize=4096)
def _wrong_cron(expression: str) -> str | None:
    try:
        check_cron(expression)
    except CronError as error:
        return str(error)
    return None


def _interval(schedule: Interval) -> Problems:
    if schedule.unit not in set(IntervalUnit):
        units = ", ".join(IntervalUnit)
        yield _problem("interval_type", schedule.unit, f"is not one of {units}")
        return
    most = min(MAX_COUNT, MAX_EVERY // timedelta(**{schedule.unit: 1}))
    yield from _whole("interval_minutes", schedule.count, 1, most)


def _frequency(schedule: Frequency) -> Problems:
    if schedule.frequency not in {"hourly", "daily", "weekly", "monthly"}:
        yield _problem("frequency", schedule.frequency, "is not one of hourly, daily, weekly, monthly, cron")
    yield from _whole("time_config.minute", schedule.minute, 0, 59)
    yield from _whole("time_config.hour", schedule.hour, 0, 23)
    yield from _whole("time_config.day", schedule.day, 1, 7)
    yield from _whole("time_config.day_of_month", schedule.day_of_month, 1, 31)


def _bounds(timing: Timing) -> Problems:
    start, end = timing.start_at, timing.end_at
    if timing.anchor_at.tzinfo is None:
        yield _problem("anchor_at", str(timing.anchor_at), "has no offset")
    wrong = [*(_instant("start_at", start) if start else ()), *(_instant("end_at", end) if end else ())]
    yield from wrong
    if start and end and not wrong and end < start:
        yield _problem("end_at", end.isoformat(), f"lies before start_at {start.isoformat()}")
    if isinstance(timing.schedule, Once) and not wrong and not [*_instant("run_at", timing.schedule.run_at)]:
        yield from _once_within(timing.schedule.run_at, start, end)
    if timing.max_runs is not None:
        yield from _whole("max_runs", timing.max_runs, 1, MAX_COUNT)
    if not timedelta() <= timing.jitter <= MAX_JITTER:
        most = int(MAX_JITTER.total_seconds())
        yield _problem("jitter_seconds", timing.jitter.total_seconds(), f"is not between 0 and {most}")


def _once_within(run_at: datetime, start: datetime | None, end: datetime | None) -> Problems:
    if start and run_at < start:
        yield _problem("run_at", run_at.isoformat(), f"lies before start_at {start.isoformat()}")
    if end and run_at > end:
        yield _problem("run_at", run_at.isoformat(), f"lies after end_at {end.isoformat()}")


def _availability(availability: Availability) -> Problems:
    if availability.outside not in set(Outside):
        yield _problem("outside", availability.outside, f"is not one of {', '.join(Outside)}")
    if len(availability.windows) > MAX_WINDOWS:
        yield _problem("windows", len(availability.windows), f"windows are too many: at most {MAX_WINDOWS}")
    for index, window in enumerate(availability.windows[:MAX_WINDOWS]):
        yield from _window(f"windows[{index}]", window)
    yield from _calendar(availability.calendar)


def _window(field: str, window: Window) -> Problems:
    wrong = [day for day in window.days if not _is_whole(day, 1, 7)]
    if wrong:
        yield _problem(f"{field}.days", wrong[0], "is not a weekday from 1 (Monday) to 7 (Sunday)")
    if not window.days:
        yield _problem(f"{field}.days", [], "is empty: the window would never open")
    for name, value in (("start", window.start), ("end", window.end)):
        if not isinstance(value, time) or value.tzinfo is not None:
            yield _problem(
                f"{field}.{name}", str(value), "is not a time of day without offset, such as 08:00"
            )
    if window.start == window.end and window.start != time():
        yield _problem(f"{field}.end", str(window.end), "equals the start; the whole day is 00:00 to 00:00")


def _calendar(calendar: Calendar) -> Problems:
    dates = calendar.excluded_dates
    if len(dates) > MAX_EXCLUDED_DATES:
        yield _problem(
            "calendar.excluded_dates", len(dates), f"dates are too many: at most {MAX_EXCLUDED_DATES}"
        )
    for day in dates:
        if not isinstance(day, date) or isinstance(day, datetime):
            yield _problem("calendar.excluded_dates", str(day), "is not a date such as 2027-12-24")
    if calendar.holidays_of is not None:
        try:
            holidays_of(calendar.holidays_of, 2027)
        except (KeyError, AttributeError):
            why = "is not a known country (DE) or part of one (DE-BY)"
            yield _problem("calendar.holidays", calendar.holidays_of, why)


def _zone(name: str) -> Problems:
    if isinstance(name, str):
        try:
            _known_zone(name)
        except (KeyError, ValueError, OSError):
            pass
        else:
            return
    near = difflib.get_close_matches(str(name)[:64], available_timezones(), n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    yield _problem("timezone", name, f"is not an IANA time zone such as 'Europe/Berlin'{hint}")


@lru_cache(maxsize=1024)
def _known_zone(name: str) -> ZoneInfo:
    if not _ZONE.fullmatch(name) or name.startswith(_NOT_ZONES):
        raise ValueError(name)
    return ZoneInfo(name)


def _instant(field: str, value: datetime) -> Problems:
    if not isinstance(value, datetime) or value.tzinfo is None:
        yield _problem(field, str(value), "is not a time with its offset, such as 2027-01-31T02:00:00Z")
        return
    # Years 1 and 9999 cannot be brought to UTC from every offset: their number alone decides.
    if value.year < EARLIEST.year:
        yield _problem(field, value.isoformat(), "lies before 1970")
    elif field != "end_at" and (value.year >= HORIZON.year or value.astimezone(UTC) >= HORIZON):
        yield _problem(field, value.isoformat(), "is too far away: the last year is 9998")


def _whole(field: str, value: int, low: int, high: int) -> Problems:
    if not _is_whole(value, low, high):
        yield _problem(field, value, f"is not a whole number from {low} to {high}")


def _is_whole(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _problem(field: str, value: object, why: str) -> Problem:
    return invalid(field, value, why).problems[0]
