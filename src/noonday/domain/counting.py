"""How many runs are to come in each hour of many days: by arithmetic where a schedule allows it.

Jobs whose times follow from their schedule alone are put together: those that want the same readings of the
wall clock, and those with the same interval. What is bounded or limited is walked, once for all jobs that
share a rhythm, as far as the budget goes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, TypeVar
from zoneinfo import ZoneInfo

from noonday.domain.dials import Days, Dial, Span, dial_of, falls_on, readings, span_of, times_until
from noonday.domain.heat import HOUR
from noonday.domain.intervals import Beats
from noonday.domain.job import JobId
from noonday.domain.pacing import pace
from noonday.domain.upcoming import Firing
from noonday.domain.wallclock import EARLIEST, SECOND, TICK

__all__ = ["Coming", "count_by_hour"]

_OF_ONE: Final = 750  # times of one rhythm that are walked: every hour of a month
_OF_ALL: Final = 10_000
_AT_LEAST: Final = 6  # of each rhythm, however many there are
_DAY: Final = timedelta(days=1)
_Readings = dict[int, tuple[float, float]]  # jobs, and seconds of their runs, by the second of the day
_Hour = tuple[int, float, float]  # the hour, and the same two
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """`rough` = there were so many times that the later ones of some jobs are guessed."""

    starts: Mapping[datetime, float]  # by the hour of UTC
    busy: Mapping[datetime, timedelta]
    rough: bool


@dataclass(slots=True)
class _Together:
    """Jobs that fire at the same times: looked at once, by the first of them."""

    first: Firing
    jobs: int = 0
    took: float = 0.0  # seconds of one run of each


def count_by_hour(
    all_jobs: Iterable[Firing], now: datetime, until: datetime, usual: Mapping[JobId, timedelta]
) -> Coming:
    """Each hour from the one that now is in, where the overdue starts; `usual` is how long runs take."""
    count = _Count(now, until)
    for job in all_jobs:
        count.take(job, took.total_seconds() if (took := usual.get(job.id)) else 0.0)
    return count.sum()


class _Count:
    def __init__(self, now: datetime, until: datetime) -> None:
        self.now = now
        self.until = until
        self.past, self.last = ((at - EARLIEST) // SECOND for at in (now, until))
        self.left = _OF_ALL
        self.rough = False
        self.starts: dict[int, float] = defaultdict(float)  # by the hour since 1970
        self.busy: dict[int, float] = defaultdict(float)
        self.beats = Beats(now, until)
        self.dials: dict[tuple[Dial, str], _Together] = {}
        self.walked: dict[Hashable, _Together] = {}

    def take(self, job: Firing, took: float) -> None:
        timing, cursor = job.timing, job.next_run_at
        if cursor is None or not job.armed:
            return
        dial = dial_of(timing, job.id)
        if self._free(job) and (dial or self.beats.take(timing, took)):
            if dial:
                _join(self.dials, (dial, timing.timezone), job, took)
            if cursor <= self.now:
                self._overdue(job, cursor, dial, took)
        else:
            _join(self.walked, self._rhythm(job, cursor, dial), job, took)

    def _free(self, job: Firing) -> bool:
        """Do its times follow from its schedule alone, from now until the end?"""
        timing = job.timing
        return (
            timing.max_runs is None
            and not timing.availability.limited
            and (timing.start_at is None or timing.start_at <= self.now)
            and (timing.end_at is None or timing.end_at >= self.until)
            and (job.skipped_through is None or job.skipped_through <= self.now)
        )

    def _rhythm(self, job: Firing, cursor: datetime, dial: Dial | None) -> Hashable:
        timing = job.timing
        if dial is None or timing.max_runs is not None or cursor <= self.now:
            return job.id
        return dial, timing.timezone, timing.start_at, timing.end_at, job.skipped_through, timing.availability

    def _overdue(self, job: Firing, cursor: datetime, dial: Dial | None, took: float) -> None:
        if dial:
            missed = times_until(dial, job.timing, job.id, cursor, self.now)
            late = 1 + sum(1 for _ in islice(missed, _OF_ONE if self.left > 0 else 0))
            self.left -= late - 1
        else:
            late = 1 + self.beats.between(job.timing, cursor, self.now)
        self._add((self.now - EARLIEST) // HOUR, late, took * late)

    def _add(self, hour: int, starts: float, took: float) -> None:
        self.starts[hour] += starts
        if took:
            self.busy[hour] += took

    def sum(self) -> Coming:
        self._sum_dials()
        for hour, starts, took in self.beats.sum():
            self._add(hour, starts, took)
        self._sum_walked()
        return Coming(
            starts={EARLIEST + hour * HOUR: count for hour, count in self.starts.items()},
            busy={EARLIEST + hour * HOUR: timedelta(seconds=took) for hour, took in self.busy.items()},
            rough=self.rough,
        )

    def _sum_walked(self) -> None:
        """What most jobs share comes first, and is known best."""
        for one in sorted(self.walked.values(), key=lambda one: -one.jobs):
            found, guessed = pace(one.first, self.now, self.until, _OF_ONE if self.left > 0 else _AT_LEAST)
            self.left -= len(found)
            self.rough = self.rough or guessed
            for hour, starts in found.items():
                self._add(hour, starts * one.jobs, starts * one.took)

    def _sum_dials(self) -> None:
        groups: dict[tuple[str, Days], list[tuple[Dial, _Together]]] = defaultdict(list)
        for (dial, zone), together in self.dials.items():
            groups[zone, dial.days].append((dial, together))
        for (zone, days), members in groups.items():
            self._sum_days(ZoneInfo(zone), days, members)

    def _sum_days(self, zone: ZoneInfo, days: Days, members: list[tuple[Dial, _Together]]) -> None:
        """All that fire on the same days of a zone: first as one day, then day by day."""
        one_day = _one_day(members)
        by_shift: dict[int, list[_Hour]] = {}
        # A clock that was set back over midnight shows a date again: the day before may not be over.
        day = self.now.astimezone(zone).date() - _DAY
        while (span := span_of(zone, day)).start <= self.last:
            if span.end > self.past and (span.even or not self._walk(span, members)) and falls_on(days, day):
                for hour, starts, took in self._hours_of(span, one_day, by_shift):
                    self._add(span.start // 3600 + hour, starts, took)
            day += _DAY

    def _hours_of(self, span: Span, one_day: _Readings, by_shift: dict[int, list[_Hour]]) -> list[_Hour]:
        """Of a whole day they are the same wherever it begins at the same minute of an hour of UTC."""
        shift = span.start % 3600
        if span.start <= self.past or span.end > self.last:
            inside = {at: one for at, one in one_day.items() if self.past < span.start + at <= self.last}
            return _hours(inside, shift)
        if shift not in by_shift:
            by_shift[shift] = _hours(one_day, shift)
        return by_shift[shift]

    def _walk(self, span: Span, members: list[tuple[Dial, _Together]]) -> bool:
        """A day on which the clock changes; not if the budget is spent: then it counts as any other."""
        if self.left <= 0:
            self.rough = True
            return False
        begin, last = (EARLIEST + timedelta(seconds=edge) - TICK for edge in (span.start, span.end))
        for dial, one in members:
            found = times_until(
                dial, one.first.timing, one.first.id, max(self.now, begin), min(self.until, last)
            )
            for at in found:
                self.left -= 1
                self._add((at - EARLIEST) // HOUR, one.jobs, one.took)
        return True


def _join(groups: dict[Key, _Together], key: Key, job: Firing, took: float) -> None:
    one = groups.setdefault(key, _Together(job))
    one.jobs += 1
    one.took += took


def _one_day(members: Iterable[tuple[Dial, _Together]]) -> _Readings:
    found: _Readings = {}
    for dial, one in members:
        for at in readings(dial):
            jobs, took = found.get(at, (0, 0.0))
            found[at] = (jobs + one.jobs, took + one.took)
    return found


def _hours(one_day: _Readings, shift: int) -> list[_Hour]:
    """By the hour of UTC from the one in which the day begins; it begins `shift` seconds after."""
    found: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for at, (jobs, took) in one_day.items():
        one = found[(at + shift) // 3600]
        one[0] += jobs
        one[1] += took
    return [(hour, jobs, took) for hour, (jobs, took) in found.items()]
