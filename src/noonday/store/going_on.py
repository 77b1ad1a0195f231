"""How a job's schedule goes on after a rest: with the next future time, what was missed being recorded."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from noonday.domain.execution import SkipReason
from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import Job
from noonday.domain.planning import arm, lapse
from noonday.domain.schedule import Immediate, Once
from noonday.domain.wallclock import TICK
from noonday.store import facts, planning, records

__all__ = ["end_pause", "go_on", "pass_over", "release"]


def end_pause(conn: Connection, job: Job, now: datetime, *, catch_up: bool = False) -> Job:
    """Go on with the next future time. A pause with an end is over then, however late somebody sees to it:
    what is due from that instant on is treated by the misfire rules, as if it had been planned in time."""
    until = job.paused_until
    rested = now if until is None or until > now else until - TICK
    job = replace(job, paused=False, paused_until=None)
    return release(conn, job, rested, SkipReason.PAUSED, catch_up=catch_up) if job.enabled else job


def release(conn: Connection, job: Job, now: datetime, reason: SkipReason, *, catch_up: bool = False) -> Job:
    """Go on with the next future time, what was missed being recorded; or, if asked, by the misfire rules."""
    if isinstance(job.timing.schedule, Immediate) and job.last_run_at is None:
        job = replace(job, timing=replace(job.timing, anchor_at=now))  # "now" is when it may run
    elif catch_up and job.next_run_at is not None and job.next_run_at <= now:
        return job
    return go_on(conn, job, now, reason)


def go_on(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> Job:
    if is_fixed_delay(job.timing) and facts.chain_goes_on(conn, job.id):
        return replace(job, next_run_at=None)  # else a second chain would begin beside the first
    armed = arm(job, now)
    following = None if _used_up(job, armed.next_run_at, now) else armed.next_run_at
    if following is None or following > now:  # else its one instant is still good
        pass_over(conn, job, now, reason)
    planning.plan(conn, records.lapses(job, armed.lapses, now))
    return replace(job, next_run_at=following, fire_count=armed.fire_count)


def pass_over(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> None:
    """Record the instants from the cursor to now, which will not run."""
    if job.next_run_at is not None and job.next_run_at <= now:
        planning.plan(conn, records.lapses(job, [lapse(job, job.next_run_at, now, reason)], now))


def _used_up(job: Job, following: datetime | None, now: datetime) -> bool:
    """A single run that was planned, and skipped before it began, does not come a second time."""
    late = following is not None and following <= now
    return late and isinstance(job.timing.schedule, Once) and job.fire_count > 0
