"""Where a job's schedule goes on after people touched it: nothing fires by surprise, nothing disappears."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection, select

from noonday.domain.errors import Invalid, Problem
from noonday.domain.execution import Execution, SkipReason
from noonday.domain.job import Job
from noonday.domain.occurrences import next_after
from noonday.domain.planning import arm
from noonday.domain.schedule import Event, Immediate, Manual, Once
from noonday.store import executions, records
from noonday.store.going_on import end_pause, go_on, pass_over, release
from noonday.store.tables import jobs

__all__ = ["changed_by_plain_sql", "end_pause", "hold", "release", "retime", "start", "unplan"]


def start(job: Job, now: datetime) -> tuple[Job, list[Execution]]:
    """Arm a new job. One that would never fire is a mistake, and better told now than found out later."""
    if not job.enabled:
        return job.altered(next_run_at=_first(job, now)), []
    armed = arm(job, now)
    if armed.next_run_at is None and not isinstance(job.timing.schedule, Event | Manual):
        raise Invalid(_never(job, now))
    made = job.altered(next_run_at=armed.next_run_at, fire_count=armed.fire_count)
    return made, records.lapses(made, armed.lapses, now)


def hold(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> Job:
    """Take back what is planned. From here on the cursor marks the first instant that falls into the rest."""
    cursor = job.next_run_at
    job = unplan(conn, job, now, reason)
    if cursor is not None and cursor <= now:
        return replace(job, next_run_at=cursor)
    return replace(job, next_run_at=_first(job, now) or cursor)


def retime(conn: Connection, old: Job, new: Job, now: datetime) -> Job:
    """The new timing from now on; instants of the old one that were due and never planned are recorded."""
    old = unplan(conn, old, now, SkipReason.EDITED)
    pass_over(conn, old, now, _resting(old) or SkipReason.EDITED)
    new = replace(new, fire_count=old.fire_count, next_run_at=None, skipped_through=None)
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


def _resting(job: Job) -> SkipReason | None:
    if job.paused:
        return SkipReason.PAUSED
    return None if job.enabled else SkipReason.DISABLED


def _first(job: Job, now: datetime) -> datetime | None:
    """The first raw instant of a job that rests."""
    if isinstance(job.timing.schedule, Immediate):
        return job.timing.anchor_at if job.fire_count == 0 else None
    return next_after(job.timing, job.id, max(now, job.skipped_through or now))


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
