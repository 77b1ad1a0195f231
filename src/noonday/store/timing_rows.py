"""The columns that say when a job is due."""

from __future__ import annotations

from datetime import date, time, timedelta
from typing import Any, Literal, cast
from zoneinfo import ZoneInfo

from noonday.domain.calendar import ALWAYS, Availability, Calendar, Outside, Window
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
from noonday.store.reading import Row, RowError, a_list, an_object, instant, readable

_NONE: dict[str, Any] = {
    "cron_expression": None,
    "interval_minutes": None,
    "interval_type": None,
    "after_completion": False,
    "schedule_time": None,
    "run_at": None,
    "frequency": None,
    "time_config": None,
}
_ALWAYS: dict[str, Any] = {"windows": None, "calendar": None, "outside": ALWAYS.outside.value}
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
# All that `read_timing` looks at.
TIMING_COLUMNS = (
    "schedule_type", *_NONE, "timezone", "anchor_at", "start_at", "end_at", "max_runs", "jitter_seconds",
    "windows", "calendar", "outside", "trigger_webhook", "trigger_channel", "created_at",
)  # fmt: skip
_FREQUENCIES = ("hourly", "daily", "weekly", "monthly")


def timing_values(timing: Timing) -> dict[str, Any]:
    return {
        "schedule_type": timing.schedule.type,
        **_NONE,
        **_schedule_values(timing.schedule),
        "timezone": timing.timezone,
        "anchor_at": timing.anchor_at,
        "start_at": timing.start_at,
        "end_at": timing.end_at,
        "max_runs": timing.max_runs,
        "jitter_seconds": timing.jitter.total_seconds(),
        **_availability_values(timing.availability),
    }


def _schedule_values(schedule: Schedule) -> dict[str, Any]:
    match schedule:
        case Cron():
            return {"cron_expression": schedule.expression}
        case Interval():
            return {
                "interval_minutes": schedule.count,
                "interval_type": schedule.unit.value,
                "after_completion": schedule.after_completion,
            }
        case Frequency():
            return {"frequency": schedule.frequency, "time_config": _time_config(schedule)}
        case Once():
            return {"run_at": schedule.run_at}
        case Immediate() | Event() | Manual():
            return {}


def _time_config(schedule: Frequency) -> dict[str, Any]:
    config: dict[str, Any] = {"minute": schedule.minute}
    if schedule.frequency != "hourly":
        config["hour"] = schedule.hour
    if schedule.frequency == "weekly":
        config["day"] = DAYS[schedule.day - 1]
    if schedule.frequency == "monthly":
        config["day_of_month"] = schedule.day_of_month
    return config


def _availability_values(availability: Availability) -> dict[str, Any]:
    if availability == ALWAYS:
        return _ALWAYS
    windows = [
        {
            "days": [DAYS[day - 1] for day in sorted(window.days)],
            "start": window.start.isoformat("auto"),
            "end": window.end.isoformat("auto"),
        }
        for window in availability.windows
    ]
    calendar: dict[str, Any] = {}
    if availability.calendar.excluded_dates:
        calendar["excluded_dates"] = sorted(day.isoformat() for day in availability.calendar.excluded_dates)
    if availability.calendar.holidays_of:
        calendar["holidays"] = availability.calendar.holidays_of
    return {"windows": windows or None, "calendar": calendar or None, "outside": availability.outside.value}


def read_timing(row: Row) -> Timing:
    zone = row["timezone"] or "UTC"
    ZoneInfo(zone)  # refuses a name it does not know
    start_at = instant(row, "start_at")
    anchor_at = instant(row, "anchor_at") or start_at or instant(row, "created_at")
    if anchor_at is None:
        raise RowError("anchor_at: is missing, and created_at too")
    return Timing(
        schedule=_schedule(row),
        anchor_at=anchor_at,
        timezone=zone,
        start_at=start_at,
        end_at=instant(row, "end_at"),
        max_runs=row["max_runs"],
        jitter=timedelta(seconds=row["jitter_seconds"]),
        availability=_availability(row),
    )


def timing_from_row(row: Row) -> Timing:
    """The same; raises RowError for whatever a hand-written value may cause."""
    try:
        return read_timing(row)
    except RowError:
        raise
    except Exception as exc:
        raise RowError(f"{type(exc).__name__}: {exc}") from exc


def _schedule(row: Row) -> Schedule:
    """By the stated type where its columns are there, else by the columns; of several the interval wins."""
    match row["schedule_type"]:
        case "event":
            return Event()
        case "manual":
            return Manual()
        case "immediate":
            return Immediate()
        case "cron" if row["cron_expression"] or row["schedule_time"]:
            return Cron(expression=row["cron_expression"] or row["schedule_time"])
        case "once" if row["run_at"] is not None:
            return _once(row)
        case "calendar" if row["frequency"]:
            return _frequency(row)
        case stated:
            return _by_columns(row, stated)


def _by_columns(row: Row, stated: str | None) -> Schedule:
    if row["interval_minutes"] is not None:
        return _interval(row)
    if expression := row["cron_expression"] or row["schedule_time"]:
        return Cron(expression=expression)
    if row["frequency"]:
        return _frequency(row)
    if row["run_at"] is not None:
        return _once(row)
    if stated is not None:
        raise RowError(f"schedule_type: {stated!r}, but the columns that belong to it are empty or unknown")
    if row["trigger_webhook"] or row["trigger_channel"]:
        return Event()
    return Manual()


def _once(row: Row) -> Once:
    run_at = instant(row, "run_at")
    assert run_at is not None
    return Once(run_at=run_at)


def _interval(row: Row) -> Interval:
    count = row["interval_minutes"]
    if not isinstance(count, int) or count < 1:
        raise RowError(f"interval_minutes: {count!r} is not a positive number")
    unit = IntervalUnit(row["interval_type"] or "minutes")
    return Interval(count=count, unit=unit, after_completion=row["after_completion"])


def _frequency(row: Row) -> Frequency | Cron:
    config = an_object(row, "time_config")
    frequency = row["frequency"]
    if frequency == "cron":
        expression = row["cron_expression"] or config.get("cron_expression") or config.get("expression")
        if not expression:
            raise RowError("time_config: frequency cron, but no cron_expression")
        return Cron(expression=str(expression))
    if frequency not in _FREQUENCIES:
        raise RowError(f"frequency: {frequency!r} is not one of {', '.join(_FREQUENCIES)}")
    return Frequency(
        frequency=cast('Literal["hourly", "daily", "weekly", "monthly"]', frequency),
        minute=int(config.get("minute", 0)),
        hour=int(config.get("hour", 0)),
        day=_day(config.get("day", "monday")),
        day_of_month=int(config.get("day_of_month", 1)),
    )


def _day(value: Any) -> int:
    if isinstance(value, int) and 1 <= value <= 7:
        return value
    text = str(value).lower()
    for number, name in enumerate(DAYS, start=1):
        if text in (name, name[:3]):
            return number
    raise RowError(f"day: {value!r} is not a day of the week")


def _availability(row: Row) -> Availability:
    windows, calendar = a_list(row, "windows"), an_object(row, "calendar")
    if not windows and not calendar and row["outside"] == "skip":
        return ALWAYS
    return Availability(
        windows=tuple(_window(item) for item in windows),
        calendar=Calendar(
            excluded_dates=frozenset(date.fromisoformat(day) for day in calendar.get("excluded_dates", ())),
            holidays_of=calendar.get("holidays"),
        ),
        outside=Outside(readable(row, "outside")),
    )


def _window(item: Any) -> Window:
    if not isinstance(item, dict):
        raise RowError(f"windows: {item!r} is not an object")
    days = frozenset(_day(day) for day in item.get("days") or range(1, 8))
    return Window(days=days, start=time.fromisoformat(item["start"]), end=time.fromisoformat(item["end"]))
