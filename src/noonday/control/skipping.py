"""Skips the next run of a job: its instant is recorded, and the schedule goes on after it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from sqlalchemy import Connection

from noonday.domain.errors import Conflict
from noonday.domain.execution import SkipReason
from noonday.domain.job import Job
from noonday.domain.planning import Lapse, arm
from noonday.domain.plans import runs_left
from noonday.store import planning, records
from noonday.store.unplanning import take_back_next

__all__ = ["pass_over_next"]


def pass_over_next(conn: Connection, job: Job, now: datetime, by: str) -> tuple[Job, datetime]:
    """The locked job with its cursor behind the next instant; and which instant that was."""
    if not job.armed:
        word = "cancelled" if job.enabled and not job.paused else "paused" if job.paused else "disabled"
        raise Conflict(f"{job.name!r} is {word}: no run of it comes by itself")
    job, planned = take_back_next(conn, job, now)
    due = planned or job.next_run_at
    if due is None or runs_left(job) == 0:
        raise Conflict(f"{job.name!r} has no next run by its schedule that could be skipped")
    skipped = Lapse(
        scheduled_for=due,
        through_at=due,
        count=1,
        reason=SkipReason.SKIPPED,
        detail=f"{by} skipped this run",
    )
    job = replace(job, skipped_through=due)
    following = arm(job, due)
    planning.plan(conn, records.lapses(job, [skipped, *following.lapses], now))
    return replace(job, next_run_at=following.next_run_at, fire_count=following.fire_count), due
