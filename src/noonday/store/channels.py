"""Jobs that a message on a channel starts: which channels they want, and their executions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, func, select

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState, SkipReason
from noonday.domain.job import Job, JobState
from noonday.domain.trigger import config_of
from noonday.ids import new_id
from noonday.ports import Message
from noonday.store import dialects
from noonday.store.definitions import KEPT, jobs_of
from noonday.store.planning import plan
from noonday.store.records import road_of
from noonday.store.tables import HAS_CHANNEL, executions, jobs

_TICK: Final = timedelta(microseconds=1)
_NAME_CHARS: Final = 200
_WANTED: Final = (HAS_CHANNEL, jobs.c.schedule_enabled, jobs.c.status != JobState.CANCELLED.value)


def wanted(conn: Connection) -> dict[str, int]:
    """The channels and patterns of all enabled jobs, with how many jobs each has."""
    query = select(jobs.c.trigger_channel, func.count()).where(*_WANTED).group_by(jobs.c.trigger_channel)
    return {channel: int(count) for channel, count in conn.execute(query).all() if channel}


def start(conn: Connection, messages: Sequence[Message], now: datetime) -> list[int]:
    """An execution of each job for each message heard as its channel; of each message, how many started.

    A paused job is not started: the messages it misses are one row of its history.
    """
    listening = _listening(conn, {message.heard_as for message in messages})
    ids = {job.id for found in listening.values() for job in found}
    following = _following(conn, ids, now)
    made: list[Execution] = []
    missed: dict[str, list[Execution]] = defaultdict(list)
    matched: list[int] = []
    for message in messages:
        found = listening.get(message.heard_as, ())
        for job in found:
            run = _run(job, message, following[job.id], now)
            following[job.id] += _TICK
            (missed[job.id] if job.paused else made).append(run)
        matched.append(sum(not job.paused for job in found))
    made += [_lapse(runs, now) for runs in missed.values()]
    plan(conn, made)
    return matched


def _listening(conn: Connection, channels: Collection[str]) -> dict[str, list[Job]]:
    """Locked, always in the same order: nobody waits in a circle."""
    dialect = dialects.of(conn)
    query = select(*KEPT).where(*_WANTED, dialect.among(jobs.c.trigger_channel, channels)).order_by(jobs.c.id)
    rows = conn.execute(dialect.locked(query, jobs)).mappings().all()
    found: dict[str, list[Job]] = defaultdict(list)
    for job in jobs_of(conn, rows).values():
        if isinstance(job, Job) and job.trigger.channel:
            found[job.trigger.channel].append(job)
    return found


def _following(conn: Connection, job_ids: Collection[str], now: datetime) -> dict[str, datetime]:
    """The next free slot of each job: now, or behind those of messages within the same moment."""
    newest = (
        select(executions.c.job_id, func.max(executions.c.scheduled_for))
        .where(dialects.of(conn).among(executions.c.job_id, job_ids), executions.c.scheduled_for >= now)
        .where(executions.c.cause == Cause.TRIGGER.value)
        .group_by(executions.c.job_id)
    )
    taken: dict[str, datetime] = {row[0]: row[1] for row in conn.execute(newest)} if job_ids else {}
    return {job_id: taken[job_id] + _TICK if job_id in taken else now for job_id in job_ids}


def _run(job: Job, message: Message, slot: datetime, now: datetime) -> Execution:
    return Execution(
        id=ExecutionId(new_id(now)),
        job_id=job.id,
        cause=Cause.TRIGGER,
        scheduled_for=slot,
        available_at=now,
        state=ExecutionState.QUEUED,
        lane=job.lane,
        road=road_of(job),
        triggered_by=f"channel:{message.channel[:_NAME_CHARS]}",
        config=config_of(job.config, message.data, message.channel[:_NAME_CHARS]),
        created_at=now,
    )


def _lapse(runs: Sequence[Execution], now: datetime) -> Execution:
    first, last = runs[0], runs[-1]
    return Execution(
        id=first.id,
        job_id=first.job_id,
        cause=Cause.TRIGGER,
        scheduled_for=first.scheduled_for,
        through_at=last.scheduled_for if len(runs) > 1 else None,
        skipped_count=len(runs),
        skip_reason=SkipReason.PAUSED,
        detail="a message came on its channel",
        triggered_by=first.triggered_by,
        available_at=None,
        state=ExecutionState.SKIPPED,
        lane=first.lane,
        road=first.road,
        completed_at=now,
        created_at=now,
    )
