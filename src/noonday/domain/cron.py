"""Cron texts as instants: cronsim finds readings of the wall clock, `wallclock` what they stand for."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Iterator
from datetime import UTC, date, datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from noonday.domain import cronfields, wallclock
from noonday.domain.cronfields import CronError

__all__ = ["CronError", "check_cron", "cron_after", "cron_times", "fixed", "resolve", "sim_of", "walls"]

_ANY_TIME = datetime(2000, 1, 1)  # noqa: DTZ001 - cronsim walks naive readings; each walk sets its own start

_LONGEST = {month: max(monthrange(year, month)[1] for year in (2027, 2028)) for month in range(1, 13)}
# The days of one month of each shape there is: (first weekday, length). All come within 28 years.
_SHAPES = {
    monthrange(year, month): tuple(date(year, month, day + 1) for day in range(monthrange(year, month)[1]))
    for year in range(2001, 2029)
    for month in range(1, 13)
}


def check_cron(expression: str) -> None:
    """Raises CronError, which names the field, unless the text is understood and is due some day."""
    if not isinstance(expression, str):
        raise CronError("a cron text must be a string")
    sim = sim_of(resolve(expression, ""))
    if sim.day_and and not _ever(sim):
        raise CronError("day of month, month and day of week never meet on one day")


def cron_after(expression: str, key: str, zone: str, after: datetime) -> datetime | None:
    """The first instant strictly after `after`; None if there is none before the year 9999.

    What was found last for the same text is remembered: it is the first one for all instants in between.
    """
    newest = _newest(resolve(expression, key), fixed(expression), ZoneInfo(zone))
    since, due = newest.found
    if since <= after < due:
        return due
    found = next(cron_times(expression, key, zone, after), None)
    if found is not None:
        newest.found = after, found
    return found


class _Newest:
    """`found`: an instant, and the first due one after it; one tuple, for several threads may look."""

    __slots__ = ("found",)

    def __init__(self) -> None:
        self.found = (wallclock.HORIZON, wallclock.EARLIEST)


@lru_cache(maxsize=4096)
def _newest(text: str, fixed: bool, zone: ZoneInfo) -> _Newest:
    return _Newest()


def cron_times(expression: str, key: str, zone: str, after: datetime) -> Iterator[datetime]:
    """The instants strictly after `after`, in order. `key` decides what H stands for."""
    after = max(after.astimezone(UTC), wallclock.EARLIEST)
    if after >= wallclock.HORIZON:
        return iter(())
    text = resolve(expression, key)
    rule = wallclock.once if fixed(expression) else wallclock.each
    return rule(lambda start: walls(text, start), ZoneInfo(zone), after)


@lru_cache(maxsize=4096)
def fixed(expression: str) -> bool:
    """Is it due at fixed times of the day? As in Debian's cron a leading star makes it a wildcard."""
    return not any(text.startswith("*") for text in cronfields.split(expression)[:3])


def resolve(expression: str, key: str) -> str:
    """The text with six plain fields: no alias, no name, no H."""
    return _resolve(expression, key if _spreads(expression) else "")


def walls(text: str, start: datetime) -> Iterator[datetime]:
    """The readings strictly after `start` that a resolved text matches."""
    # cronsim knows zones too, but there a wildcard loses runs where clocks change by half an hour, and stands
    # still for ever where they are set back over midnight. So it is asked for bare readings only.
    sim = _copied(sim_of(text))
    sim.dt = start
    try:
        for wall in sim:
            if wall.year >= wallclock.HORIZON.year:
                return
            yield wall
    except OverflowError:
        return


def _copied(sim: CronSim) -> CronSim:
    """As copy.copy, in a fraction of the time."""
    made = CronSim.__new__(CronSim)
    made.__dict__.update(sim.__dict__)
    return made


@lru_cache(maxsize=4096)
def _spreads(expression: str) -> bool:
    return any(cronfields.spreads(text) for text in cronfields.split(expression))


@lru_cache(maxsize=16_384)
def _resolve(expression: str, key: str) -> str:
    fields = cronfields.split(expression)
    return " ".join(cronfields.plain(index, text, key) for index, text in enumerate(fields))


@lru_cache(maxsize=2048)  # a day has 1440 minutes
def sim_of(text: str) -> CronSim:
    """What cronsim makes of a resolved text; to be copied before it is set going."""
    try:
        return CronSim(text, _ANY_TIME)
    except CronSimError as error:
        if str(error) == "Bad day-of-month":
            day, months = text.split()[cronfields.DAY], text.split()[cronfields.MONTH]
            raise CronError(f"day of month {day!r} never comes in month {months!r}") from error
        raise CronError(str(error)) from error  # not reached as long as our grammar is the stricter one


def _ever(sim: CronSim) -> bool:
    lengths = {_LONGEST[month] for month in sim.months}
    if 29 in lengths:
        lengths.add(28)
    return any(
        sim.match_day(day) for (_, length), days in _SHAPES.items() if length in lengths for day in days
    )
