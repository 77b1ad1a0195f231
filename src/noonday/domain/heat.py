"""How many runs are to come in each hour of many days, without walking through each of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Final

from noonday.domain.job import Job, JobId
from noonday.domain.load import DAY, Load, rhythm_of
from noonday.domain.schedule import Interval
from noonday.domain.upcoming import fires

HOUR: Final = timedelta(hours=1)
_OF_ONE: Final = 750  # fires of one rhythm that are walked: every hour of a month
_OF_ALL: Final = 10_000
_AT_LEAST: Final = 6  # of each rhythm, however many there are

Starts = Mapping[datetime, float]  # by the hour of UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Coming:
    """`rough` = there were so many times that the later ones of some jobs are guessed."""

    starts: Starts
    busy: Mapping[datetime, timedelta]
    rough: bool


@dataclass(slots=True)
class _Rhythm:
    """Jobs that fire at the same times: walked once, by the first of them."""

    first: Job
    jobs: int = 0
    took: timedelta = timedelta()  # one run of each together


def coming(
    all_jobs: Iterable[Job], now: datetime, until: datetime, usual: Mapping[JobId, timedelta]
) -> Coming:
    """Each hour from the one that now is in."""
    rhythms: dict[Hashable, _Rhythm] = {}
    for job in all_jobs:
        one = rhythms.setdefault(_even(job) or rhythm_of(job, now) or job.id, _Rhythm(job))
        one.jobs += 1
        one.took += usual.get(job.id, timedelta())
    starts: dict[datetime, float] = defaultdict(float)
    busy: dict[datetime, timedelta] = defaultdict(timedelta)
    rough, left = False, _OF_ALL
    for one in sorted(rhythms.values(), key=lambda one: -one.jobs):  # what most jobs share is known best
        found, guessed = _pace(one.first, now, until, _OF_ONE if left > 0 else _AT_LEAST)
        left -= len(found)
        rough = rough or guessed
        for hour, count in found.items():
            starts[hour] += count * one.jobs
            if one.took:
                busy[hour] += one.took * count
    return Coming(starts=starts, busy=busy, rough=rough)


def hour_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def quietest(load: Load, count: int) -> list[tuple[datetime, float]]:
    """The emptiest slots of the day, those with quiet neighbours first, in the order of time.

    The slot that has begun is none of them.
    """
    slots = load.starts
    beside = [slots[place - 1] + slots[(place + 1) % len(slots)] for place in range(len(slots))]
    best = sorted(range(1, len(slots)), key=lambda place: (slots[place], beside[place], place))[:count]
    return [(load.start + place * load.slot, slots[place]) for place in sorted(best)]


def level(value: float, lowest: float, peak: float, levels: int) -> int:
    """A shade from 0 (nothing) to `levels` (the peak).

    Small differences above a high floor are shaded as small differences: the scale is never narrower than a
    third of the peak.
    """
    if value <= 0 or peak <= 0:
        return 0
    floor = min(lowest, peak * 2 / 3)
    return 1 + round((levels - 1) * max(value - floor, 0) / (peak - floor))


def _even(job: Job) -> timedelta | None:
    """The period of an interval that fires several times in every hour, for ever."""
    timing, schedule = job.timing, job.timing.schedule
    if not isinstance(schedule, Interval) or schedule.after_completion or schedule.every >= HOUR:
        return None
    bounds = (timing.max_runs, timing.start_at, timing.end_at)
    free = job.armed and not timing.availability.limited and bounds == (None, None, None)
    return schedule.every if free else None


def _pace(job: Job, now: datetime, until: datetime, most: int) -> tuple[Starts, bool]:
    """Starts by the hour; whether those after the first `most` are no more than a guess."""
    if every := _even(job):
        return _evenly(now, until, HOUR / every), False
    found: dict[datetime, float] = defaultdict(float)
    times: list[datetime] = []
    for at in fires(job, now):
        if at > until:
            break
        if len(times) == most:
            return _going_on(found, times, until)
        times.append(at)
        found[hour_of(max(at, now))] += 1
    return found, False


def _evenly(since: datetime, until: datetime, rate: float) -> Starts:
    hour = hour_of(since)
    made = {hour: rate * ((min(hour + HOUR, until) - since) / HOUR)}
    hour += HOUR
    while hour + HOUR <= until:
        made[hour] = rate
        hour += HOUR
    if hour < until:
        made[hour] = rate * ((until - hour) / HOUR)
    return made


def _going_on(
    found: dict[datetime, float], times: Sequence[datetime], until: datetime
) -> tuple[Starts, bool]:
    """As in the week before, or as on the day before; with less to go by, at the pace so far.

    And whether that is a guess: a pace that did not change for half a day is none.
    """
    span = times[-1] - times[0]
    for period in (7 * DAY, DAY):
        if span > period + HOUR:
            last = hour_of(times[-1])
            for hour, count in [*found.items()]:
                at = hour + period
                while last - period <= hour < last and at <= until:
                    found[at] = count
                    at += period
            return found, period == DAY
    if span:
        for hour, count in _evenly(times[-1], until, (len(times) - 1) * (HOUR / span)).items():
            found[hour] += count
    even = len({later - sooner for sooner, later in pairwise(times)}) == 1
    return found, not (even and span > DAY / 2)
