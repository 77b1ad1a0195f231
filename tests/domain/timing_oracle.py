"""An oracle for schedules that knows nothing of them: it steps through UTC and looks at the wall clock."""

from __future__ import annotations

import calendar
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

from hypothesis import HealthCheck, Phase, seed, settings

from noonday.domain.schedule import Frequency

SEED = os.environ.get("NOONDAY_TEST_SEED", "0")
YEARS = (2026, 2027)
ZONES: dict[str, tuple[int, ...]] = {
    "UTC": (2027,),
    "Africa/Cairo": YEARS,  # at midnight
    "Africa/Casablanca": YEARS,  # back in winter time for Ramadan
    "America/Adak": YEARS,
    "America/Asuncion": (2023,),
    "America/Caracas": (2007, 2016),  # half an hour, once each way
    "America/Havana": YEARS,  # midnight happens twice
    "America/Los_Angeles": YEARS,
    "America/New_York": YEARS,
    "America/Nuuk": YEARS,  # 23:00 to 24:00 is missing
    "America/Santiago": YEARS,
    "America/Sao_Paulo": (2018,),
    "America/St_Johns": (2009, 2027),  # 2009: at 00:01, set back over midnight
    "Antarctica/Troll": YEARS,  # two hours
    "Asia/Beirut": YEARS,
    "Asia/Gaza": YEARS,
    "Asia/Jerusalem": YEARS,
    "Asia/Kathmandu": YEARS,
    "Asia/Kolkata": YEARS,
    "Asia/Pyongyang": (2015, 2018),
    "Asia/Tehran": (2022,),
    "Atlantic/Azores": YEARS,
    "Australia/Adelaide": YEARS,
    "Australia/Lord_Howe": YEARS,  # half an hour
    "Europe/Berlin": YEARS,
    "Europe/Dublin": YEARS,
    "Europe/London": YEARS,
    "Europe/Volgograd": (2018, 2020),
    "Pacific/Apia": (2011,),  # 30 December 2011 is missing
    "Pacific/Chatham": YEARS,
    "Pacific/Kwajalein": (1993,),  # 21 August 1993 is missing
    "Pacific/Norfolk": YEARS,
}

MINUTE, SECOND, HOUR = timedelta(minutes=1), timedelta(seconds=1), timedelta(hours=1)
Matcher = Callable[[datetime], bool]


@dataclass(frozen=True)
class Window:
    """Some hours around a change of the clocks, step by step: the instant and what the wall clock shows."""

    zone: str
    change: datetime
    step: timedelta
    steps: tuple[tuple[datetime, datetime], ...]


@lru_cache(maxsize=256)
def window(zone: str, change: datetime, step: timedelta) -> Window:
    reach = 36 * HOUR if step == MINUTE else 3.5 * HOUR
    return stepped(zone, change, step, change - reach, change + reach)


def stepped(zone: str, change: datetime, step: timedelta, start: datetime, end: datetime) -> Window:
    steps = []
    while start <= end:
        steps.append((start, start.astimezone(ZoneInfo(zone)).replace(tzinfo=None)))
        start += step
    return Window(zone, change, step, tuple(steps))


@lru_cache(maxsize=256)
def changes(zone: str) -> tuple[datetime, ...]:
    found = []
    for year in ZONES[zone]:
        instant = datetime(year, 1, 1, tzinfo=UTC)
        while instant.year == year:
            later = instant + MINUTE * 30
            if instant.astimezone(ZoneInfo(zone)).utcoffset() != later.astimezone(ZoneInfo(zone)).utcoffset():
                found.append(next(at for at in minutes(instant) if moved(zone, at)))
            instant = later
    return tuple(found) or (datetime(ZONES[zone][0], 2, 28, 23, tzinfo=UTC),)


def minutes(instant: datetime) -> Iterator[datetime]:
    while True:
        instant += MINUTE
        yield instant


def moved(zone: str, instant: datetime) -> bool:
    before = (instant - MINUTE).astimezone(ZoneInfo(zone)).utcoffset()
    return before != instant.astimezone(ZoneInfo(zone)).utcoffset()


def brute_force(around: Window, matches: Matcher, fixed: bool) -> list[datetime]:
    """Fixed: a wall time counts when the clock first shows it or has jumped over it. Else: whenever shown."""
    due, highest = [], around.steps[0][1]
    for instant, wall in around.steps[1:]:
        if not fixed:
            hit = matches(wall)
        else:
            hit = False
            while highest < wall:
                highest += around.step
                hit = hit or matches(highest)
        if hit:
            due.append(instant)
    return due


def cron_matcher(text: str) -> Matcher:
    fields = text.upper().split()
    second, minute, hour, day, month, weekday = fields if len(fields) == 6 else ["0", *fields]
    seconds, minutes_, hours = values(second, 0, 59), values(minute, 0, 59), values(hour, 0, 23)
    months = values(month, 1, 12, [name.upper() for name in calendar.month_abbr if name])
    both = day[0] == "*" or weekday[0] == "*"
    days: dict[tuple[int, int, int], bool] = {}

    def day_matches(wall: datetime) -> bool:
        by_day = any(day_of_month(term, wall) for term in day.split(","))
        by_weekday = any(day_of_week(term, wall) for term in weekday.split(","))
        return (by_day and by_weekday) if both else (by_day or by_weekday)

    def matches(wall: datetime) -> bool:
        if wall.minute not in minutes_ or wall.hour not in hours or wall.second not in seconds:
            return False
        key = (wall.year, wall.month, wall.day)
        if key not in days:
            days[key] = wall.month in months and day_matches(wall)
        return days[key]

    return matches


def values(text: str, low: int, high: int, names: list[str] | None = None) -> set[int]:
    found: set[int] = set()
    for number, name in enumerate(names or [], low):
        text = text.replace(name, str(number))
    for term in text.split(","):
        span, _, step = term.partition("/")
        first, dash, last = span.partition("-")
        if span == "*":
            first, last = str(low), str(high)
        elif not dash:
            last = str(high) if step else first
        found.update(range(int(first), int(last) + 1, int(step or 1)))
    return found


def day_of_month(term: str, wall: datetime) -> bool:
    length = calendar.monthrange(wall.year, wall.month)[1]
    if term == "L":
        return wall.day == length
    if term == "LW":
        working = [day for day in range(1, length + 1) if wall.replace(day=day).isoweekday() < 6]
        return wall.day == working[-1]
    return wall.day in values(term, 1, 31)


def day_of_week(term: str, wall: datetime) -> bool:
    names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]
    for number, name in enumerate(names):
        term = term.replace(name, str(number))
    number = wall.isoweekday() % 7
    if "#" in term:
        day, nth = term.split("#")
        return number == int(day) % 7 and (wall.day - 1) // 7 + 1 == int(nth)
    if term.endswith("L"):
        return number == int(term[0]) % 7 and (wall + timedelta(days=7)).month != wall.month
    first, dash, last = term.partition("-")
    if dash and int(first) > int(last):
        return number >= int(first) or number <= int(last)
    return number in {day % 7 for day in values(term, 0, 7 if dash or term == "7" else 6)}


def frequency_matcher(schedule: Frequency) -> Matcher:
    def matches(wall: datetime) -> bool:
        if wall.second or wall.minute != schedule.minute:
            return False
        if schedule.frequency == "hourly":
            return True
        last = calendar.monthrange(wall.year, wall.month)[1]
        return (
            wall.hour == schedule.hour
            and {
                "daily": True,
                "weekly": wall.isoweekday() == schedule.day,
                "monthly": wall.day == min(schedule.day_of_month, last),
            }[schedule.frequency]
        )

    return matches


def seeded(examples: int, name: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Examples of its own for each name; the same each time, unless NOONDAY_TEST_SEED is set."""

    def decorate(test: Callable[[], None]) -> Callable[[], None]:
        chosen = settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )(test)
        return seed(f"{SEED} {name}")(chosen)

    return decorate
