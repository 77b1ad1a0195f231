"""Where a job's schedule goes on after people touched it: nothing fires by surprise, nothing disappears."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, select

from noonday.domain.errors import Invalid, Problem
from noonday.domain.execution import Execution, SkipReason
from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import Job
from noonday.domain.occurrences import next_after
from noonday.domain.planning import arm, lapse
from noonday.domain.schedule import Event, Immediate, Manual, Once
from noonday.store import executions, facts, records
from noonday.store.tables import jobs


def start(job: Job, now: datetime) -> tuple[Job, list[Execution]]:
    """Arm a new job. One that would never fire is a mistake, and better told now than found out later."""
    if not job.enabled:
        return replace(job, next_run_at=_first(job, now)), []
    armed = arm(job, now)
    if armed.next_run_at is None and not isinstance(job.timing.schedule, Event | Manual):
        raise Invalid(_never(job, now))
    made = replace(job, next_run_at=armed.next_run_at, fire_count=armed.fire_count)
    return made, records.lapses(made, armed.lapses, now)


def hold(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> Job:
    """Take back what is planned. From here on the cursor marks the first instant that falls into the rest."""
    cursor = job.next_run_at
    job = unplan(conn, job, now, reason)
    if cursor is not None and cursor <= now:
        return replace(job, next_run_at=cursor)
    return replace(job, next_run_at=_first(job, now) or cursor)


def release(conn: Connection, job: Job, now: datetime, reason: SkipReason, *, catch_up: bool = False) -> Job:
    """Go on with the next future time, what was missed being recorded; or, if asked, by the misfire rules."""
    if isinstance(job.timing.schedule, Immediate) and job.last_run_at is None:
        job = replace(job, timing=replace(job.timing, anchor_at=now))  # "now" is when it may run
    elif catch_up and _overdue(job, now):
        return job
    return go_on(conn, job, now, reason)


def retime(conn: Connection, old: Job, new: Job, now: datetime) -> Job:
    """The new timing from now on; instants of the old one that were due and never planned are recorded."""
    old = unplan(conn, old, now, SkipReason.EDITED)
    pass_over(conn, old, now, _resting(old) or SkipReason.EDITED)
    new = replace(new, fire_count=old.fire_count, next_run_at=None)
    if _resting(new):
        return replace(new, next_run_at=_first(new, now))
    return go_on(conn, new, now, SkipReason.EDITED)


def changed_by_plain_sql(conn: Connection, job: Job) -> bool:
    """Does the cursor belong to what the job was before somebody changed its row?

    The watcher sees to that too, but saving a job tells it that there is nothing left to do.
    """
    return bool(conn.execute(select(jobs.c.dirty).where(jobs.c.id == job.id)).scalar())


def unplan(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> Job:
    return executions.unplan(conn, job, now, reason)


def go_on(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> Job:
    if is_fixed_delay(job.timing) and facts.chain_goes_on(conn, job.id):
        return replace(job, next_run_at=None)  # else a second chain would begin beside the first
    armed = arm(job, now)
    following = None if _used_up(job, armed.next_run_at, now) else armed.next_run_at
    if following is None or following > now:  # else its one instant is still good
        pass_over(conn, job, now, reason)
    executions.plan(conn, records.lapses(job, armed.lapses, now))
    return replace(job, next_run_at=following, fire_count=armed.fire_count)


def _used_up(job: Job, following: datetime | None, now: datetime) -> bool:
    """A single run that was planned, and skipped before it began, does not come a second time."""
    late = following is not None and following <= now
    return late and isinstance(job.timing.schedule, Once) and job.fire_count > 0


def pass_over(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> None:
    """Record the instants from the cursor to now, which will not run."""
    if job.next_run_at is not None and job.next_run_at <= now:
        executions.plan(conn, records.lapses(job, [lapse(job, job.next_run_at, now, reason)], now))


def _resting(job: Job) -> SkipReason | None:
    if job.paused:
        return SkipReason.PAUSED
    return None if job.enabled else SkipReason.DISABLED


def _overdue(job: Job, now: datetime) -> bool:
    return job.next_run_at is not None and job.next_run_at <= now


def _first(job: Job, now: datetime) -> datetime | None:
    """The first raw instant of a job that rests."""
    if isinstance(job.timing.schedule, Immediate):
        return job.timing.anchor_at if job.fire_count == 0 else None
    return next_after(job.timing, job.id, now)


def _never(job: Job, now: datetime) -> Problem:
    timing = job.timing
    if isinstance(timing.schedule, Once) and timing.schedule.run_at <= now:
        return Problem(
            "run_at", f"{timing.schedule.run_at.isoformat()} has passed, so that it would never run"
        )
    if timing.end_at is not None and timing.end_at <= now:
        return Problem("end_at", f"{timing.end_at.isoformat()} has passed, so that it would never run")
    if timing.availability.windows:
        return Problem("windows", "leave no time at which it would run")
    return Problem("end_at" if timing.end_at else "schedule_type", "it would never run")
