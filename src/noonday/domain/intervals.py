"""Fixed-rate intervals by the hour: all with the same period and phase are counted together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final, TypeVar

from noonday.domain.instants import first_of
from noonday.domain.schedule import Interval, Timing
from noonday.domain.wallclock import EARLIEST, TICK

__all__ = ["Beats"]

_HOUR: Final = timedelta(hours=1) // TICK
_STEPS: Final = 200_000  # of intervals that neither divide an hour nor are made of whole ones

Key = TypeVar("Key", int, tuple[int, int])
Figures = tuple[float, float]  # starts, and seconds of their runs


class Beats:
    """From after `now` to `until`; hours are counted from 1970, times in microseconds."""

    def __init__(self, now: datetime, until: datetime) -> None:
        self._now, self._until = ((at - EARLIEST) // TICK for at in (now, until))
        self._first, self._last = self._now // _HOUR, self._until // _HOUR
        self._each: Figures = (0.0, 0.0)  # in each whole hour
        self._whole: dict[tuple[int, int], Figures] = defaultdict(lambda: (0.0, 0.0))  # by period and phase
        self._found: dict[int, Figures] = defaultdict(lambda: (0.0, 0.0))
        self._left = _STEPS

    def take(self, timing: Timing, took: float) -> bool:
        """Whether it could be counted: an interval that has begun."""
        schedule = timing.schedule
        if not isinstance(schedule, Interval) or schedule.after_completion:
            return False
        every, first = _every_and_first(timing, schedule)
        if first > self._now:
            return False
        self._edges(every, first, took)
        if _HOUR % every == 0 or every < _HOUR or self._left <= 0:
            rate = _HOUR / every
            self._each = (self._each[0] + rate, self._each[1] + rate * took)
        elif every % _HOUR == 0:
            hours = every // _HOUR
            _add(self._whole, (hours, first // _HOUR % hours), took)
        else:
            self._walk(every, first, took)
        return True

    def between(self, timing: Timing, after: datetime, until: datetime) -> int:
        """How many lie after one instant up to another."""
        assert isinstance(timing.schedule, Interval)
        every, first = _every_and_first(timing, timing.schedule)
        return _count(every, first, (after - EARLIEST) // TICK, (until - EARLIEST) // TICK)

    def _edges(self, every: int, first: int, took: float) -> None:
        """The rest of the hour that has begun, and the beginning of the one in which the end lies."""
        end = min((self._first + 1) * _HOUR - 1, self._until)
        _add(self._found, self._first, took, _count(every, first, self._now, end))
        if self._last > self._first:
            _add(self._found, self._last, took, _count(every, first, self._last * _HOUR - 1, self._until))

    def _walk(self, every: int, first: int, took: float) -> None:
        start, end = (self._first + 1) * _HOUR, self._last * _HOUR
        for at in range(start + (first - start) % every, end, every):
            _add(self._found, at // _HOUR, took)
            self._left -= 1

    def sum(self) -> Iterator[tuple[int, float, float]]:
        """Hour, starts, and seconds of their runs."""
        for hour, (starts, took) in self._found.items():
            if starts:
                yield hour, starts, took
        starts, took = self._each
        if starts:
            for hour in range(self._first + 1, self._last):
                yield hour, starts, took
        for (hours, phase), (starts, took) in self._whole.items():
            start = self._first + 1
            for hour in range(start + (phase - start) % hours, self._last, hours):
                yield hour, starts, took


def _every_and_first(timing: Timing, schedule: Interval) -> tuple[int, int]:
    return schedule.every // TICK, (first_of(timing, schedule.every) - EARLIEST) // TICK


def _count(every: int, first: int, after: int, until: int) -> int:
    return max((until - first) // every + 1, 0) - max((after - first) // every + 1, 0)


def _add(found: dict[Key, Figures], key: Key, took: float, count: float = 1) -> None:
    starts, busy = found[key]
    found[key] = (starts + count, busy + count * took)
