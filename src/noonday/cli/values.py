"""What people type for durations, instants and schedules, as values of the domain."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from noonday.domain.errors import invalid
from noonday.domain.schedule import Cron, Frequency, Interval, IntervalUnit, Once, Schedule

__all__ = ["check_page", "duration", "instant", "interval", "schedule", "seconds", "until", "zone"]

_UNITS = {
    "s": IntervalUnit.SECONDS,
    "m": IntervalUnit.MINUTES,
    "h": IntervalUnit.HOURS,
    "d": IntervalUnit.DAYS,
}
_SIZES = {unit: timedelta(**{unit.value: 1}) for unit in IntervalUnit}
_NAMES = {"s": "s|secs?|seconds?", "m": "m|mins?|minutes?", "h": "h|hrs?|hours?", "d": "d|days?"}
_PART = re.compile(
    r"\s*(\d{1,9})\s*(?:" + "|".join(f"(?P<{unit}>{names})" for unit, names in _NAMES.items()) + r")(?![a-z])"
)
_TIME = re.compile(r"(\d{1,2}):(\d{2})")
_UTC = ZoneInfo("UTC")
_LONGEST_PAGE = 1000
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def check_page(limit: int, offset: int = 0) -> None:
    """--limit and --offset, before anything is opened for them."""
    if not 1 <= limit <= _LONGEST_PAGE:
        raise invalid("--limit", limit, f"must lie between 1 and {_LONGEST_PAGE}")
    if offset < 0:
        raise invalid("--offset", offset, "must not be negative")


def interval(field: str, text: str, *, after_completion: bool = False) -> Interval:
    """`5m`, `90 seconds`, `1h30m`: counted in the smallest unit that was written."""
    rest, parts = text.strip().lower(), []
    while rest:
        found = _PART.match(rest)
        if found is None:
            raise invalid(field, text, "is no duration: write 30s, 5m, 2h, 1d or 1h30m")
        parts.append((int(found[1]), _UNITS[str(found.lastgroup)]))
        rest = rest[found.end() :].strip()
    total = sum((count * _SIZES[unit] for count, unit in parts), timedelta())
    if not total:
        raise invalid(field, text, "must be longer than nothing")
    unit = min((unit for _, unit in parts), key=lambda unit: _SIZES[unit])
    return Interval(count=total // _SIZES[unit], unit=unit, after_completion=after_completion)


def duration(field: str, text: str) -> timedelta:
    """A span; a bare number counts seconds."""
    if re.fullmatch(r"\d{1,12}", text.strip()):
        return timedelta(seconds=int(text))
    return interval(field, text).every


def seconds(field: str, text: str | None) -> int | None:
    return None if text is None else int(duration(field, text).total_seconds())


def zone(field: str, name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as exc:
        raise invalid(field, name, "is no time zone: write a name such as Europe/Berlin or UTC") from exc


def instant(field: str, text: str, zone: ZoneInfo) -> datetime:
    """An ISO time as UTC; without an offset it is meant in `zone`."""
    try:
        found = datetime.fromisoformat(text.strip())
        return (found if found.tzinfo else found.replace(tzinfo=zone)).astimezone(UTC)
    except ValueError as exc:
        raise invalid(field, text, "is no time: write 2027-01-31T02:00, or exactly with +01:00 or Z") from exc
    except OverflowError as exc:
        raise invalid(field, text, "is too far away") from exc


def until(field: str, text: str, now: datetime) -> datetime:
    """An ISO time, or a span from now."""
    return now + interval(field, text).every if _PART.match(text.lower()) else instant(field, text, _UTC)


def schedule(field: str, text: str, zone: ZoneInfo = _UTC) -> Schedule:
    """A cron text, or words: `every 5m`, `hourly :15`, `daily 02:00`, `weekly mon 02:00`, `at <ISO time>`."""
    word, _, rest = text.strip().partition(" ")
    rest = rest.strip().removeprefix("at ").strip()
    match word.lower():
        case "every":
            return interval(field, rest)
        case "at" | "once":
            return Once(run_at=instant(field, rest, zone))
        case "hourly" | "daily" | "weekly" | "monthly" as kind:
            return _SHAPES[kind](field, rest)
        case _:
            return Cron(expression=text.strip())


def _time(field: str, text: str) -> tuple[int, int]:
    found = _TIME.fullmatch(text)
    if found is None or int(found[1]) > 23 or int(found[2]) > 59:
        raise invalid(field, text, "is no time of day: write 02:00")
    return int(found[1]), int(found[2])


def _hourly(field: str, text: str) -> Frequency:
    minute = text.removeprefix(":") or "0"
    if not (minute.isdecimal() and int(minute) < 60):
        raise invalid(field, text, "is no minute of the hour: write hourly :15")
    return Frequency(frequency="hourly", minute=int(minute))


def _daily(field: str, text: str) -> Frequency:
    hour, minute = _time(field, text or "00:00")
    return Frequency(frequency="daily", hour=hour, minute=minute)


def _weekly(field: str, text: str) -> Frequency:
    day, _, time = text.partition(" ")
    named = [number for number, name in enumerate(_DAYS, 1) if name.startswith(day.lower())]
    if len(named) != 1:
        raise invalid(field, day, "is no day of the week: write weekly mon 02:00")
    hour, minute = _time(field, time.strip() or "00:00")
    return Frequency(frequency="weekly", day=named[0], hour=hour, minute=minute)


def _monthly(field: str, text: str) -> Frequency:
    day, _, time = text.partition(" ")
    if not (day.isdecimal() and 1 <= int(day) <= 31):
        raise invalid(field, day, "is no day of the month: write monthly 1 02:00")
    hour, minute = _time(field, time.strip() or "00:00")
    return Frequency(frequency="monthly", day_of_month=int(day), hour=hour, minute=minute)


_SHAPES: dict[str, Callable[[str, str], Frequency]] = {
    "hourly": _hourly,
    "daily": _daily,
    "weekly": _weekly,
    "monthly": _monthly,
}
