"""Taking back what was planned, when a job is paused, disabled, cancelled or edited."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, select, update

from noonday.domain.execution import SkipReason
from noonday.domain.job import Job
from noonday.domain.planning import lapse
from noonday.store.tables import WAITING, executions, jobs

_MINE = executions.c.cause == "schedule"


def unplan(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> Job:
    """The locked job without its planned future; returns it with the fires given back to its count.

    What was due and has not begun is skipped with the reason; a recorded lapse keeps only its past.
    """
    waiting = (WAITING, executions.c.job_id == job.id, _MINE, executions.c.attempt == 0)
    gone = conn.execute(delete(executions).where(*waiting, executions.c.scheduled_for > now)).rowcount
    skipped: dict[str, Any] = {
        "state": "skipped",
        "skip_reason": reason.value,
        "skipped_count": 1,
        "wait_reason": None,
        "detail": f"was due but had not begun when the job was {_WORDS.get(reason, reason.value)}",
        "completed_at": now,
    }
    conn.execute(update(executions).where(*waiting).values(skipped))
    gone_lapses = _cut_lapses(conn, job, now, reason)
    left = max(job.fire_count - gone, 0)
    values = {"fire_count": left, "row_count": jobs.c.row_count - gone - gone_lapses}
    conn.execute(update(jobs).where(jobs.c.id == job.id).values(values))
    return replace(job, fire_count=left)


def take_back_next(conn: Connection, job: Job, now: datetime) -> tuple[Job, datetime | None]:
    """The locked job without the runs that are planned ahead; and when the first of them was due."""
    mine = (WAITING, executions.c.job_id == job.id, _MINE, executions.c.attempt == 0)
    ahead = (*mine, executions.c.scheduled_for > now)
    first: datetime | None = conn.execute(
        select(executions.c.scheduled_for).where(*ahead).order_by(executions.c.scheduled_for).limit(1)
    ).scalar()
    if first is None:
        return job, None
    gone = conn.execute(delete(executions).where(*ahead)).rowcount
    left = max(job.fire_count - gone, 0)
    values = {"fire_count": left, "row_count": jobs.c.row_count - gone}
    conn.execute(update(jobs).where(jobs.c.id == job.id).values(values))
    return replace(job, fire_count=left), first


_WORDS = {SkipReason.EDITED: "changed"}


_RESTS = frozenset({SkipReason.PAUSED, SkipReason.DISABLED})


def _cut_lapses(conn: Connection, job: Job, now: datetime, reason: SkipReason) -> int:
    """Lapses are recorded ahead as well: what they say of the future is no longer true.

    What people have skipped stays skipped while the job rests.
    """
    mine = [executions.c.job_id == job.id, _MINE, executions.c.state == "skipped"]
    if reason in _RESTS:
        mine.append(executions.c.skip_reason != SkipReason.SKIPPED.value)
    gone = conn.execute(delete(executions).where(*mine, executions.c.scheduled_for > now)).rowcount
    # Only the newest can reach beyond now: lapses of one job do not overlap.
    query = (
        select(executions.c.id, executions.c.scheduled_for, executions.c.through_at, executions.c.skip_reason)
        .where(*mine)
        .order_by(executions.c.scheduled_for.desc())
        .limit(1)
    )
    row = conn.execute(query).first()
    if row is not None and row.through_at is not None and row.through_at > now:
        past = lapse(job, row.scheduled_for, now, SkipReason(row.skip_reason))
        through, count = (past.through_at, past.count) if past else (row.scheduled_for, 1)
        values = {"through_at": through, "skipped_count": count}
        conn.execute(update(executions).where(executions.c.id == row.id).values(values))
    return gone
