"""The short way to a plan: of jobs that nothing closes, and that fire all that they have missed.

Most plans are such. What they say is what `planning` finds on its long way.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from noonday.domain.calendar import ALWAYS
from noonday.domain.cron import resolve
from noonday.domain.instants import first_of, next_after, times
from noonday.domain.job import Job
from noonday.domain.misfire import BUSY, always_fires
from noonday.domain.occurrences import spread
from noonday.domain.plans import Facts, Fire, Plan, runs_left
from noonday.domain.schedule import Cron, Frequency, Immediate, Interval, Once, Timing
from noonday.domain.wallclock import EARLIEST, HORIZON, TICK

_LONG: Final = timedelta(days=36525)
_FAR: Final = HORIZON - 2 * _LONG  # no sum of what lies before it and a shorter interval overflows


def straight(job: Job, cursor: datetime, facts: Facts, now: datetime) -> Plan | None:
    """The plan of a job that is due and has runs left; None where it takes the long way to find it."""
    timing = job.timing
    schedule = timing.schedule
    if cursor < now - BUSY and not always_fires(job):
        return None
    if timing.availability is not ALWAYS and timing.availability.limited:
        return None
    if isinstance(schedule, Interval):
        return _interval(job, schedule, cursor, facts, now)
    if isinstance(schedule, Once):
        return _single(job, schedule.run_at, cursor)
    if isinstance(schedule, Immediate):
        return _single(job, max(timing.anchor_at, timing.start_at or timing.anchor_at), cursor)
    if isinstance(schedule, Cron | Frequency):
        return _by_the_clock(job, schedule, cursor, now + facts.lookahead)
    return None


def _single(job: Job, instant: datetime, cursor: datetime) -> Plan | None:
    if instant != cursor:
        return None
    fire = Fire(
        scheduled_for=cursor,
        available_at=_available(job, cursor),
        covers_from=min(job.timing.anchor_at, cursor),
    )
    return Plan(fires=(fire,), next_run_at=None, fire_count=job.fire_count + 1)


def _interval(job: Job, schedule: Interval, cursor: datetime, facts: Facts, now: datetime) -> Plan | None:
    timing, every = job.timing, schedule.every
    anchor = timing.anchor_at
    if timing.end_at is not None or schedule.after_completion:
        return None
    if every > _LONG or anchor > _FAR or cursor > _FAR:
        return None
    first = first_of(timing, every)
    if cursor < first or (cursor - first) % every:
        return None
    count = min((now - cursor + facts.lookahead) // every + 1, facts.cap)
    left = runs_left(job)
    ended = left is not None and left <= count
    before = cursor - every
    if before < first or before <= anchor:
        before = min(anchor, cursor)
    fires, due = [], cursor
    for _ in range(left if left is not None and ended else count):
        fires.append(Fire(scheduled_for=due, available_at=_available(job, due), covers_from=before))
        before, due = due, due + every
    return Plan(
        fires=tuple(fires), next_run_at=None if ended else due, fire_count=job.fire_count + len(fires)
    )


def _by_the_clock(job: Job, schedule: Cron | Frequency, cursor: datetime, horizon: datetime) -> Plan | None:
    """One fire, with another one known to be behind the horizon."""
    timing = job.timing
    if timing.start_at is not None or timing.end_at is not None:
        return None
    found = _neighbours(schedule, _key(schedule, job.id), timing.timezone, cursor)
    if found is None or found[1] <= horizon:
        return None
    before, following = found
    fire = Fire(
        scheduled_for=cursor,
        available_at=_available(job, cursor),
        covers_from=before if before > timing.anchor_at else min(timing.anchor_at, cursor),
    )
    return Plan(
        fires=(fire,),
        next_run_at=None if runs_left(job) == 1 else following,
        fire_count=job.fire_count + 1,
    )


def _key(schedule: Cron | Frequency, job_id: str) -> str:
    """Jobs with the same schedule are due at the same times, unless H stands for something else in each."""
    if isinstance(schedule, Frequency):
        return ""
    same = resolve(schedule.expression, job_id) == resolve(schedule.expression, "")
    return "" if same else job_id


# Of each schedule three instants in a row: the next one to be asked about is mostly the second or the third.
_steps: dict[tuple[Cron | Frequency, str, str], tuple[datetime, datetime, datetime]] = {}
_MOST_STEPS: Final = 16_384


def _neighbours(
    schedule: Cron | Frequency, key: str, zone: str, cursor: datetime
) -> tuple[datetime, datetime] | None:
    """The instants before and after one; None if there are none, or if they are hard to find."""
    known = _steps.get((schedule, key, zone))
    if known is not None and known[1] == cursor:
        return known[0], known[2]
    timing = Timing(schedule=schedule, anchor_at=EARLIEST, timezone=zone)
    following = next_after(timing, key, cursor)
    if following is None:
        return None
    if known is not None and known[2] == cursor:
        before: datetime | None = known[1]
    else:  # most schedules keep their step
        near = times(timing, key, cursor - (following - cursor) - TICK)
        before = next(near, None)
        if before is None or next(near, None) != cursor:
            return None
    assert before is not None
    if len(_steps) >= _MOST_STEPS:
        _steps.clear()
    _steps[schedule, key, zone] = (before, cursor, following)
    return before, following


def _available(job: Job, due: datetime) -> datetime:
    return due + spread(job.timing, job.id, due) if job.timing.jitter else due
