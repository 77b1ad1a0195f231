"""A schedule in one plain sentence, for people who check what they typed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, time, timedelta
from typing import assert_never
from zoneinfo import ZoneInfo

from cronsim.explain import explain as cron_words

from noonday.domain import cronfields
from noonday.domain.calendar import WEEKDAYS, Availability, Outside, Window
from noonday.domain.cron import resolve
from noonday.domain.schedule import Cron, Event, Frequency, Immediate, Interval, Manual, Once, Timing

DASH = "\N{EN DASH}"
_ORDINAL = re.compile(r"\b(\d+)th\b")
_ONE_WEEKDAY = re.compile(rf"(At [\d:, and]+) on ({'|'.join(WEEKDAYS)})")


def explain(timing: Timing, key: str) -> str:
    """One sentence: what the schedule says, its zone, its bounds, where it may run. `key` decides H."""
    zone = ZoneInfo(timing.timezone)
    bounds = [*_bounds(timing, zone), *_availability(timing.availability)]
    by_itself = not isinstance(timing.schedule, Event | Manual)
    place = [timing.timezone] if by_itself or bounds else []
    return ", ".join([_schedule(timing, zone, key), *place, *bounds])


def _schedule(timing: Timing, zone: ZoneInfo, key: str) -> str:
    match timing.schedule:
        case Cron(expression=expression):
            return _cron(expression, key)
        case Interval() as interval:
            return _interval(interval, timing, zone)
        case Frequency() as frequency:
            return _frequency(frequency)
        case Once(run_at=run_at):
            return f"Once, at {_moment(run_at, zone)}"
        case Immediate():
            return f"Once, at once ({_moment(timing.start_at or timing.anchor_at, zone)})"
        case Event():
            return "Whenever its webhook or channel is triggered"
        case Manual():
            return "Only when somebody asks for it"
        case _:
            assert_never(timing.schedule)


def _cron(expression: str, key: str) -> str:
    text = resolve(expression, key)
    words = cron_words(_simple(text)).replace("if it's on ", "if it is ")
    words = _ORDINAL.sub(lambda match: _ordinal(int(match[1])), words)
    if match := _ONE_WEEKDAY.fullmatch(words):
        words = f"{match[1]} every {match[2]}"
    if chosen := list(_chosen(expression, text)):
        words += f" ({' and '.join(chosen)})"
    return words


def _chosen(expression: str, text: str) -> Iterator[str]:
    """What became of each H."""
    for rule, written, plain in zip(
        cronfields.RULES, cronfields.split(expression), text.split(), strict=True
    ):
        if cronfields.spreads(written):
            yield f"{written} became {rule.name} {plain}"


def _simple(text: str) -> str:
    """Without what only looks manifold: a step beyond its field (`*/60`), Sunday named twice (`0,7`)."""
    fields = text.split()
    for index, rule in enumerate(cronfields.RULES[:3]):
        match = re.fullmatch(r"\*/(\d+)", fields[index])
        if match and int(match[1]) > rule.high:
            fields[index] = str(rule.low)
    days = fields[cronfields.WEEKDAY].split(",")
    fields[cronfields.WEEKDAY] = ",".join(dict.fromkeys("0" if day == "7" else day for day in days))
    return " ".join(fields)


def _ordinal(number: int) -> str:
    teens = 11 <= number % 100 <= 13
    suffix = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{suffix}"


def _interval(interval: Interval, timing: Timing, zone: ZoneInfo) -> str:
    if interval.after_completion:
        return f"Again {_counted(interval.count, interval.unit)} after each run has ended"
    every = interval.unit.value[:-1] if interval.count == 1 else _counted(interval.count, interval.unit)
    return f"Every {every}, counted from {_moment(timing.start_at or timing.anchor_at, zone)}"


def _frequency(schedule: Frequency) -> str:
    at = f"At {schedule.hour:02}:{schedule.minute:02}"
    match schedule.frequency:
        case "hourly":
            return (
                f"At minute {schedule.minute} of every hour"
                if schedule.minute
                else "At the start of every hour"
            )
        case "daily":
            return f"{at} every day"
        case "weekly":
            return f"{at} every {WEEKDAYS[schedule.day - 1]}"
        case "monthly":
            return f"{at} on the {_day_of_month(schedule.day_of_month)}"
        case _:
            assert_never(schedule.frequency)


def _day_of_month(day: int) -> str:
    if day == 31:
        return "last day of every month"
    shorter = " (the last one of a shorter month)" if day > 28 else ""
    return f"{_ordinal(day)} day of every month{shorter}"


def _bounds(timing: Timing, zone: ZoneInfo) -> Iterator[str]:
    if timing.start_at:
        yield f"from {_moment(timing.start_at, zone)}".removesuffix(" 00:00")
    if timing.end_at:
        yield f"until {_moment(timing.end_at, zone)}"
    if timing.max_runs is not None:
        yield "at most once" if timing.max_runs == 1 else f"at most {timing.max_runs} times"
    if timing.jitter:
        yield f"spread over {_span(timing.jitter)}"


def explain_availability(availability: Availability) -> str:
    """Windows and calendar alone."""
    return ", ".join(_availability(availability))


def _availability(availability: Availability) -> Iterator[str]:
    if not availability.limited:
        return
    if availability.windows:
        yield "only " + " and ".join(_window(window) for window in availability.windows)
    calendar = availability.calendar
    if calendar.holidays_of:
        yield f"not on public holidays of {calendar.holidays_of}"
    if calendar.excluded_dates:
        dates = sorted(calendar.excluded_dates)
        few = " or ".join(str(day) for day in dates)
        yield f"not on {few}" if len(dates) <= 3 else f"not on {len(dates)} excluded dates"
    if availability.outside is Outside.MOVE:
        yield "otherwise at the next opening"


def _window(window: Window) -> str:
    end = "24:00" if window.end == time() else _clock(window.end)
    return f"{_days(window.days)} {_clock(window.start)}{DASH}{end}"


def _days(days: frozenset[int]) -> str:
    if len(days) == 7:
        return "every day"
    runs: list[list[int]] = []
    for day in sorted(days):
        if runs and runs[-1][-1] == day - 1:
            runs[-1].append(day)
        else:
            runs.append([day])
    return ", ".join(_run(run) for run in runs)


def _run(run: list[int]) -> str:
    names = [WEEKDAYS[day - 1][:3] for day in run]
    return f"{names[0]}{DASH}{names[-1]}" if len(names) > 2 else ", ".join(names)


def _moment(instant: datetime, zone: ZoneInfo) -> str:
    try:
        local = instant.astimezone(zone)
    except OverflowError:  # the last day of the year 9999
        local = instant
    return f"{local:%Y-%m-%d} {_clock(local.time())}"


def _clock(moment: time) -> str:
    return f"{moment:%H:%M:%S}" if moment.second else f"{moment:%H:%M}"


def _span(span: timedelta) -> str:
    for unit in ("days", "hours", "minutes", "seconds"):
        size = timedelta(**{unit: 1})
        if span >= size and not span % size:
            return _counted(span // size, unit)
    return f"{span.total_seconds():g} seconds"


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit[:-1] if count == 1 else unit}"
