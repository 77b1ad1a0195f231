"""Jobs that a message on a channel starts: which channels they want, and their executions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection, func, select

from noonday.domain.execution import Execution
from noonday.domain.job import Job, JobState
from noonday.domain.trigger import config_of
from noonday.ports import Message
from noonday.store import dialects, triggered
from noonday.store.definitions import KEPT, readable_jobs
from noonday.store.planning import plan
from noonday.store.tables import HAS_CHANNEL, jobs

_MISSED: Final = "a message came on its channel"
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
    following = triggered.free_slots(conn, ids, now)
    made: list[Execution] = []
    missed: dict[str, list[Execution]] = defaultdict(list)
    matched: list[int] = []
    for message in messages:
        found = listening.get(message.heard_as, ())
        for job in found:
            run = _run(job, message, following[job.id], now)
            following[job.id] += triggered.TICK
            (missed[job.id] if job.paused else made).append(run)
        matched.append(sum(not job.paused for job in found))
    made += [triggered.lapse(runs, _MISSED, now) for runs in missed.values()]
    plan(conn, made)
    return matched


def _listening(conn: Connection, channels: Collection[str]) -> dict[str, list[Job]]:
    """Locked, always in the same order: nobody waits in a circle."""
    dialect = dialects.of(conn)
    query = select(*KEPT).where(*_WANTED, dialect.among(jobs.c.trigger_channel, channels)).order_by(jobs.c.id)
    rows = conn.execute(dialect.locked(query, jobs)).all()
    found: dict[str, list[Job]] = defaultdict(list)
    for job in readable_jobs(conn, rows).values():
        if job.trigger.channel:
            found[job.trigger.channel].append(job)
    return found


def _run(job: Job, message: Message, slot: datetime, now: datetime) -> Execution:
    channel = message.channel[:_NAME_CHARS]
    config = config_of(job.config, message.data, channel)
    return triggered.run(job, by=f"channel:{channel}", config=config, slot=slot, now=now)
