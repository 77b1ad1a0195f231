"""Intervals that count from the end of the run before: each run makes the next one due."""

from __future__ import annotations

from datetime import datetime

from noonday.domain.calendar import next_opening
from noonday.domain.job import Job
from noonday.domain.occurrences import next_after, spread
from noonday.domain.plans import Fire, Plan, runs_left
from noonday.domain.schedule import Interval, Timing
from noonday.domain.wallclock import EARLIEST


def is_fixed_delay(timing: Timing) -> bool:
    return isinstance(timing.schedule, Interval) and timing.schedule.after_completion


def plan_fixed_delay(job: Job, due: datetime) -> Plan:
    """It fires however late: the next instant exists only once this one has run."""
    fire = Fire(
        scheduled_for=due,
        available_at=due + spread(job.timing, job.id, due),
        covers_from=min(job.last_run_at or job.timing.anchor_at, due),
    )
    return Plan(fires=(fire,), next_run_at=None, fire_count=job.fire_count + 1)


def arm_fixed_delay(job: Job, now: datetime) -> datetime | None:
    first = next_after(job.timing, job.id, EARLIEST)
    schedule = job.timing.schedule
    if first is None or not isinstance(schedule, Interval):
        return None
    due = first if job.last_run_at is None else max(first, job.last_run_at + schedule.every)
    return _opening(job.timing, due if due > now else now + schedule.every)


def next_after_completion(job: Job, now: datetime) -> datetime | None:
    """Of a fixed-delay job whose run ended now: when the next one is due. None for every other job."""
    schedule = job.timing.schedule
    if not isinstance(schedule, Interval) or not schedule.after_completion or runs_left(job) == 0:
        return None
    return _opening(job.timing, now + schedule.every)


def _opening(timing: Timing, due: datetime) -> datetime | None:
    """A delay has no fixed times to keep, so outside the windows it is always moved to the next opening."""
    opening = next_opening(timing.availability, timing.timezone, due)
    if opening is None or (timing.end_at is not None and opening > timing.end_at):
        return None
    return opening
