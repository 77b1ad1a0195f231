"""Schedules on the wire and inside: the words of all five seeds on one side, `Timing` on the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from typing import Any, assert_never
from zoneinfo import ZoneInfo

from noonday.api.bodies import CalendarBody, ScheduleBody, TimeConfigBody, WindowBody
from noonday.api.fields import weekday_name
from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.errors import Invalid, Problem, invalid
from noonday.domain.occurrences import check
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

__all__ = ["apply_timing", "cron_of", "instant_text", "number", "read_instant", "timing_json", "to_timing"]

# Where both are present the interval wins, as it did where these names come from.
_TELLING = {
    "interval_minutes": "interval",
    "frequency": "calendar",
    "cron_expression": "cron",
    "schedule_time": "cron",
    "run_at": "once",
}
_OWN = {
    "cron": ("cron_expression", "schedule_time"),
    "interval": ("interval_minutes", "interval_type", "after_completion"),
    "calendar": ("frequency", "time_config"),
    "once": ("run_at",),
}
_LEGACY = frozenset({"schedule_time"})
_FIELDS = tuple(name for names in _OWN.values() for name in names)
_NAMES = frozenset(ScheduleBody.model_fields)


def to_timing(body: ScheduleBody, now: datetime) -> Timing:
    return apply_timing(body, Timing(schedule=Manual(), anchor_at=now), now, new=True)


def apply_timing(body: ScheduleBody, timing: Timing, now: datetime, *, new: bool = False) -> Timing:
    """The timing with the fields that the body names, the others left alone."""
    given = {name: getattr(body, name) for name in body.model_fields_set & _NAMES}
    zone = _zone(given.get("timezone") or ("UTC" if "timezone" in given else timing.timezone))
    start_at = _instant("start_at", given, timing.start_at, zone)
    schedule = _schedule(given, None if new else timing.schedule, zone)
    moved = new or schedule != timing.schedule or start_at != timing.start_at
    return replace(
        timing,
        schedule=schedule,
        # A new rhythm counts from now; one that only gets other bounds keeps its beat.
        anchor_at=(start_at or now) if moved else timing.anchor_at,
        timezone=zone.key,
        start_at=start_at,
        end_at=_instant("end_at", given, timing.end_at, zone),
        max_runs=given.get("max_runs", timing.max_runs),
        jitter=timedelta(seconds=given["jitter_seconds"] or 0)
        if "jitter_seconds" in given
        else timing.jitter,
        availability=_availability(given, timing.availability),
    )


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # OSError: a folder of zones such as "Europe"
        check(Timing(schedule=Manual(), anchor_at=datetime(2000, 1, 1, tzinfo=UTC), timezone=name))
        raise


def _span(seconds: float | None) -> timedelta:
    return timedelta(seconds=seconds or 0)


def _instant(
    field: str, given: Mapping[str, Any], current: datetime | None, zone: ZoneInfo
) -> datetime | None:
    if field not in given:
        return current
    value: datetime | None = given[field]
    return None if value is None else read_instant(field, value, zone)


def read_instant(field: str, value: datetime, zone: ZoneInfo) -> datetime:
    """In UTC; a time without offset is meant in the given zone."""
    try:
        return (value if value.tzinfo else value.replace(tzinfo=zone)).astimezone(UTC)
    except OverflowError:
        raise invalid(field, value.isoformat(), "is too far away") from None


def _schedule(given: Mapping[str, Any], current: Schedule | None, zone: ZoneInfo) -> Schedule:
    given = _plain_cron(given)
    named = {name: value for name, value in given.items() if value is not None}
    kind = named.get("schedule_type") or _told_by(named) or (current.type if current else _without(named))
    _refuse_strangers(kind, named)
    fields = _kept(current, kind, named)
    fields |= {name: given[name] for name in _FIELDS if name in given}
    match kind:
        case "cron":
            return _cron(fields)
        case "interval":
            return _interval(fields)
        case "calendar":
            return _frequency(fields)
        case "once" if isinstance(current, Once) and "run_at" not in given:
            return current
        case "once":
            return Once(run_at=_needed("run_at", _instant("run_at", fields, None, zone), kind))
        case "immediate":
            return Immediate()
        case "event":
            return Event()
        case _:
            return Manual()


def _kept(current: Schedule | None, kind: str, named: Mapping[str, Any]) -> dict[str, Any]:
    """What is stored and may be left unsaid."""
    if current is None or current.type != kind:
        return {}
    fields = _schedule_json(current)
    if "schedule_time" in named:
        fields.pop("cron_expression", None)  # else the stored text would win over the new one
    return fields


def _plain_cron(given: Mapping[str, Any]) -> Mapping[str, Any]:
    """`frequency: cron` with the text in its time_config is a cron schedule under another name."""
    if given.get("frequency") != "cron":
        return given
    config: TimeConfigBody = given.get("time_config") or TimeConfigBody()
    text = config.cron or config.cron_expression or config.expression or given.get("cron_expression")
    if not text:
        raise Invalid(Problem("time_config.cron", "is needed where the frequency is cron"))
    others = {name: value for name, value in given.items() if name not in ("frequency", "time_config")}
    return {**others, "schedule_type": "cron", "cron_expression": text}


def _told_by(named: Mapping[str, Any]) -> str | None:
    return next((kind for name, kind in _TELLING.items() if name in named), None)


def _without(named: Mapping[str, Any]) -> str:
    """No word about when: what waits for a trigger waits, anything else runs once now."""
    return "event" if "trigger_webhook" in named or "trigger_channel" in named else "immediate"


def _refuse_strangers(kind: str, named: Mapping[str, Any]) -> None:
    strangers = [
        name
        for owner, names in _OWN.items()
        for name in names
        if owner != kind and name in named and name not in _LEGACY
    ]
    # An interval may stand beside a cron text, which then rests.
    if kind == "interval":
        strangers = [name for name in strangers if name != "cron_expression"]
    if strangers:
        words = f"does not belong to a schedule of type {kind}: leave it out or send null"
        raise Invalid(*(Problem(name, words) for name in strangers))


def _needed(field: str, value: Any, kind: str) -> Any:
    if value is None:
        raise Invalid(Problem(field, f"is needed for a schedule of type {kind}"))
    return value


def _cron(fields: Mapping[str, Any]) -> Cron:
    text = fields.get("cron_expression") or fields.get("schedule_time")
    return cron_of(_needed("cron_expression", text, "cron"))


def cron_of(text: str) -> Cron:
    return Cron(expression=" ".join(text.split()))


def _interval(fields: Mapping[str, Any]) -> Interval:
    count = _needed("interval_minutes", fields.get("interval_minutes"), "interval")
    unit = IntervalUnit(fields.get("interval_type") or IntervalUnit.MINUTES)
    interval = Interval(count=count, unit=unit, after_completion=bool(fields.get("after_completion")))
    try:
        too_long = interval.every > timedelta(days=3650)
    except OverflowError:
        too_long = True
    if too_long:
        raise invalid("interval_minutes", count, f"{unit} are more than ten years")
    return interval


def _frequency(fields: Mapping[str, Any]) -> Frequency:
    config = fields.get("time_config")
    if not isinstance(config, TimeConfigBody):  # as it was stored
        config = TimeConfigBody.model_validate(config or {})
    return Frequency(
        frequency=_needed("frequency", fields.get("frequency"), "calendar"),
        minute=config.minute or 0,
        hour=config.hour or 0,
        day=config.day or 1,
        day_of_month=config.day_of_month or 1,
    )


def _availability(given: Mapping[str, Any], current: Availability) -> Availability:
    windows: list[WindowBody] | None = given.get("windows")
    calendar: CalendarBody | None = given.get("calendar")
    return Availability(
        windows=tuple(Window(days=frozenset(w.days), start=w.start, end=w.end) for w in windows or ())
        if "windows" in given
        else current.windows,
        calendar=_calendar(calendar) if "calendar" in given else current.calendar,
        outside=(given["outside"] or Outside.SKIP) if "outside" in given else current.outside,
    )


def _calendar(body: CalendarBody | None) -> Calendar:
    if body is None:
        return Calendar()
    holidays = body.holidays.upper() if body.holidays else None
    return Calendar(excluded_dates=frozenset(body.excluded_dates), holidays_of=holidays)


def timing_json(timing: Timing) -> dict[str, Any]:
    """All wire fields of a timing; those of other kinds of schedule are null."""
    availability = timing.availability
    calendar = availability.calendar
    return {
        "schedule_type": timing.schedule.type,
        **dict.fromkeys(name for name in _FIELDS if name not in _LEGACY),
        **_schedule_json(timing.schedule),
        "timezone": timing.timezone,
        "start_at": instant_text(timing.start_at),
        "end_at": instant_text(timing.end_at),
        "max_runs": timing.max_runs,
        "jitter_seconds": number(timing.jitter),
        "windows": [
            {"days": [weekday_name(day) for day in sorted(window.days)]}
            | {"start": _clock(window.start), "end": _clock(window.end)}
            for window in availability.windows
        ],
        "calendar": {
            "excluded_dates": [day.isoformat() for day in sorted(calendar.excluded_dates)],
            "holidays": calendar.holidays_of,
        },
        "outside": availability.outside.value,
    }


def _schedule_json(schedule: Schedule) -> dict[str, Any]:
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
            return {"run_at": instant_text(schedule.run_at)}
        case Immediate() | Event() | Manual():
            return {}
        case _:
            assert_never(schedule)


def _time_config(schedule: Frequency) -> dict[str, Any]:
    config: dict[str, Any] = {"minute": schedule.minute}
    if schedule.frequency != "hourly":
        config["hour"] = schedule.hour
    if schedule.frequency == "weekly":
        config["day"] = weekday_name(schedule.day)
    if schedule.frequency == "monthly":
        config["day_of_month"] = schedule.day_of_month
    return config


def instant_text(instant: datetime | None) -> str | None:
    """RFC 3339 in UTC, with a Z."""
    return None if instant is None else instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def number(span: timedelta) -> int | float:
    """Seconds, without a fraction where there is none."""
    seconds = span.total_seconds()
    return int(seconds) if seconds == int(seconds) else seconds


def _clock(moment: time) -> str:
    return moment.isoformat("minutes" if not moment.second else "seconds")
