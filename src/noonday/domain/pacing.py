"""Runs to come by the hour of one job that is followed for a while, and then goes on as it began."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Final

from noonday.domain.heat import HOUR
from noonday.domain.load import DAY
from noonday.domain.upcoming import Firing, fires_until
from noonday.domain.wallclock import EARLIEST

__all__ = ["Starts", "pace"]

Starts = Mapping[int, float]  # by the hour since 1970
_HOURS: Final = DAY // HOUR


def pace(job: Firing, now: datetime, until: datetime, most: int) -> tuple[Starts, bool]:
    """Starts by the hour; whether those after the first `most` are no more than a guess."""
    found: dict[int, float] = defaultdict(float)
    times: list[datetime] = []
    for at in fires_until(job, now, until):
        if len(times) == most:
            return _going_on(found, times, min(until, job.timing.end_at or until))
        times.append(at)
        found[(max(at, now) - EARLIEST) // HOUR] += 1
    return found, False


def _evenly(found: dict[int, float], since: datetime, until: datetime, rate: float) -> None:
    first, last = ((at - EARLIEST) / HOUR for at in (since, until))
    found[int(first)] += rate * (min(int(first) + 1, last) - first)
    for hour in range(int(first) + 1, int(last)):
        found[hour] += rate
    if int(last) > int(first):
        found[int(last)] += rate * (last - int(last))


def _going_on(found: dict[int, float], times: Sequence[datetime], until: datetime) -> tuple[Starts, bool]:
    """As in the week before, or as on the day before; with less to go by, at the pace so far.

    And whether that is a guess: a pace that did not change for half a day is none.
    """
    span = times[-1] - times[0]
    last, end = ((at - EARLIEST) // HOUR for at in (times[-1], until))
    for period in (7 * _HOURS, _HOURS):
        if span > (period + 1) * HOUR:
            for hour in range(last - period, last):
                for later in range(hour + period, end + 1, period) if hour in found else ():
                    found[later] = found[hour]
            return found, period == _HOURS
    if span:
        _evenly(found, times[-1], until, (len(times) - 1) * (HOUR / span))
    even = len({later - sooner for sooner, later in pairwise(times)}) == 1
    return found, not (even and span > DAY / 2)
