"""Jobs that a webhook call starts: which patterns they wait for, and their executions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, select

from noonday.domain.errors import Invalid, Problem
from noonday.domain.execution import Execution
from noonday.domain.job import Job, JobState
from noonday.domain.webhooks import Patterns, pattern_of
from noonday.store import dialects, triggered
from noonday.store.definitions import KEPT, readable_jobs
from noonday.store.owners import owned_by
from noonday.store.planning import plan
from noonday.store.tables import HAS_WEBHOOK, jobs

_MISSED: Final = "its webhook was called"
_WANTED: Final = (HAS_WEBHOOK, jobs.c.schedule_enabled, jobs.c.status != JobState.CANCELLED.value)
_MOST_BYTES: Final = 64 << 20  # of all that one delivery may write
_ROW_BYTES: Final = 1024  # of an execution without what the call brought


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A webhook call: its path, what it brings to the config of each run, and how large that is."""

    path: str
    event: Mapping[str, Any]
    size: int = 0  # bytes
    service: str | None = None  # of a caller that may start the jobs of this service alone


def wanted(conn: Connection) -> Patterns[str]:
    """The patterns of all enabled jobs, each standing for its job's id; what is no pattern is left out."""
    rows = conn.execute(select(jobs.c.trigger_webhook, jobs.c.id).where(*_WANTED))
    return Patterns((pattern, job_id) for pattern, job_id in rows.all() if is_pattern(pattern))


def is_pattern(text: str) -> bool:
    """False for what plain SQL may have put there."""
    try:
        pattern_of(text)
    except Invalid:
        return False
    return True


def start(conn: Connection, call: Call, candidates: Collection[str], now: datetime) -> list[dict[str, str]]:
    """An execution of each job among the candidates that still waits for this path, in the order of ids.

    A paused job is not started: its history says what it missed.
    """
    found = _waiting(conn, call, candidates)
    if len(found) * (call.size + _ROW_BYTES) > _MOST_BYTES:
        words = f"{len(found)} jobs wait for {call.path}: too many for {call.size} bytes of data in each run"
        raise Invalid(Problem("path", words))
    slots = triggered.free_slots(conn, [job.id for job in found], now)
    runs = [_run(job, call, slots[job.id], now) for job in found]
    plan(conn, runs)
    return [_entry(job, run) for job, run in zip(found, runs, strict=True)]


def _waiting(conn: Connection, call: Call, candidates: Collection[str]) -> list[Job]:
    """Locked, always in the same order: nobody waits in a circle."""
    if not candidates:
        return []
    dialect = dialects.of(conn)
    query = select(*KEPT).where(*_WANTED, dialect.among(jobs.c.id, candidates)).order_by(jobs.c.id)
    if call.service is not None:
        query = query.where(owned_by(conn, call.service))
    rows = conn.execute(dialect.locked(query, jobs)).all()
    found = readable_jobs(conn, rows).values()
    still = Patterns(
        (job.trigger.webhook, job.id)
        for job in found
        if job.trigger.webhook is not None and is_pattern(job.trigger.webhook)
    )
    fitting = set(still.match(call.path))
    return sorted((job for job in found if job.id in fitting), key=lambda job: job.id)


def _run(job: Job, call: Call, slot: datetime, now: datetime) -> Execution:
    config = {**job.config, **call.event, "webhook_path": call.path}
    made = triggered.run(job, by=f"webhook:{call.path}", config=config, slot=slot, now=now)
    return triggered.lapse([made], _MISSED, now) if job.paused else made


def _entry(job: Job, run: Execution) -> dict[str, str]:
    return {"job_id": job.id, "job_name": job.name, "execution_id": run.id, "status": run.state.value}
