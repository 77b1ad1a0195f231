"""How many runs start when: the coming day in slots, and one number that says how evenly they are filled."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import sqrt
from typing import Final

from noonday.domain.cron import fixed, resolve
from noonday.domain.instants import first_of
from noonday.domain.job import JobId
from noonday.domain.schedule import Cron, Frequency, Interval
from noonday.domain.upcoming import Firing, fires_until
from noonday.domain.wallclock import EARLIEST, TICK

MINUTE: Final = timedelta(minutes=1)
DAY: Final = timedelta(days=1)
MINUTES: Final = DAY // MINUTE
SLOTS: Final = (5, 10, 15, 20, 30, 60)  # minutes that a slot may have: so that an hour is full of them
_WALKED: Final = 1500  # fires of one job that are looked at one by one: more than one a minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Starts in each slot of the day from `start` on; a part of one where a fast job was not counted out."""

    start: datetime
    slot: timedelta
    starts: tuple[float, ...]

    @property
    def total(self) -> float:
        return sum(self.starts)

    @property
    def mean(self) -> float:
        return self.total / len(self.starts)

    @property
    def deviation(self) -> float:
        """Standard deviation."""
        mean = self.mean
        return sqrt(sum((one - mean) ** 2 for one in self.starts) / len(self.starts))

    @property
    def score(self) -> float:
        """1 if all slots are filled alike, 0 if they differ as much as they hold: 1 - deviation / mean."""
        return max(0.0, 1.0 - self.deviation / self.mean) if self.total else 1.0


def first_minute(now: datetime, slot: timedelta) -> datetime:
    """The beginning of the slot that now is in."""
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + (now - midnight) // slot * slot


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The minutes of the day in which a job fires, and how often it does in each minute after the last."""

    minutes: tuple[int, ...]
    beyond: float = 0.0


def walks_of(all_jobs: Iterable[Firing], now: datetime, start: datetime) -> dict[JobId, Walk]:
    """Of each job; those that share a rhythm are walked once."""
    known: dict[Hashable, Walk] = {}
    found: dict[JobId, Walk] = {}
    for job in all_jobs:
        rhythm = rhythm_of(job, now) or job.id
        if rhythm not in known:
            known[rhythm] = _walk(job, now, start)
        found[job.id] = known[rhythm]
    return found


def rhythm_of(job: Firing, now: datetime) -> Hashable:
    """What alone decides in which minutes a job fires, if it has no bounds; else None."""
    timing = job.timing
    bounds = (timing.max_runs, timing.start_at, timing.end_at)
    if timing.availability.limited or bounds != (None, None, None):
        return None
    if not job.armed or job.next_run_at is None or job.next_run_at <= now:
        return None
    match timing.schedule:
        case Cron(expression=text):
            return resolve(text, job.id), fixed(text), timing.timezone
        case Frequency():
            return timing.schedule, timing.timezone
        case Interval(after_completion=False) as interval if interval.every % MINUTE == timedelta():
            first = first_of(timing, interval.every)
            return interval.every, (first - EARLIEST) % interval.every // MINUTE if first <= now else first
        case _:
            return None


def _walk(job: Firing, now: datetime, start: datetime) -> Walk:
    """A fast job is followed for a while only: it goes on as it began."""
    if beyond := _per_minute(job, now):
        return Walk(minutes=((now - start) // MINUTE,), beyond=beyond)
    found: list[int] = []
    for at in fires_until(job, now, start + DAY - TICK):
        minute = (at - start) // MINUTE
        if len(found) == _WALKED:
            return Walk(minutes=tuple(found), beyond=len(found) / (found[-1] - found[0] + 1))
        if minute >= 0:  # else it is overdue
            found.append(minute)
    return Walk(minutes=tuple(found))


def _per_minute(job: Firing, now: datetime) -> float:
    """Of an interval of seconds that goes on all day; else nothing."""
    timing, schedule = job.timing, job.timing.schedule
    if not isinstance(schedule, Interval) or schedule.after_completion or schedule.every >= MINUTE:
        return 0.0
    free = job.armed and job.next_run_at is not None and not timing.availability.limited
    bounds = (timing.max_runs, timing.end_at, job.skipped_through)
    begun = first_of(timing, schedule.every) <= now
    return MINUTE / schedule.every if free and begun and bounds == (None, None, None) else 0.0


def by_minute(walks: Iterable[Walk]) -> list[float]:
    """Starts in each minute of the day."""
    minutes = [0.0] * MINUTES
    shared: dict[int, tuple[Walk, int]] = {}  # jobs of one rhythm have the very same walk
    for one in walks:
        shared[id(one)] = (one, shared.get(id(one), (one, 0))[1] + 1)
    for one, jobs in shared.values():
        for minute in one.minutes:
            minutes[minute] += jobs
        if one.beyond:
            for minute in range(one.minutes[-1] + 1, MINUTES):
                minutes[minute] += one.beyond * jobs
    return minutes


def in_slots(minutes: Sequence[float], start: datetime, slot: timedelta) -> Load:
    size = slot // MINUTE
    sums = tuple(sum(minutes[first : first + size]) for first in range(0, MINUTES, size))
    return Load(start=start, slot=slot, starts=sums)
