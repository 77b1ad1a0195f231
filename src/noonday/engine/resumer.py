"""Ends the pauses whose time has come: the job goes on with what is due from that instant on."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.job import Job, JobState
from noonday.engine.aside import set_aside
from noonday.engine.counters import Counters
from noonday.engine.fence import Fence, no_fence
from noonday.engine.loop import Actor, Wish
from noonday.store import audit, facts, jobs, pauses
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.going_on import end_pause
from noonday.store.notices import JOBS
from noonday.store.releasing import resting

log = structlog.get_logger(__name__)

_BATCH = 200
_HELD = timedelta(seconds=1)


class Resumer(Actor):
    """Sleeps until the next pause ends; told of every change, for that may be a new pause."""

    name = "resumer"
    gap = 0.1

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        counters: Counters,
        check_interval: timedelta = timedelta(seconds=60),
        fence: Fence = no_fence,
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(JOBS))
        self._db = db
        self._counters = counters
        self._check_interval = check_interval
        self._fence = fence

    async def run_once(self) -> Wish:
        ends_at = await self._db.read(pauses.next_end)
        while ends_at is not None and ends_at <= self.clock.now():
            if not await self._db.write(self._resume_batch):
                return _HELD  # somebody else holds it
            ends_at = await self._db.read(pauses.next_end)
        safety = self.clock.now() + self._check_interval
        return safety if ends_at is None else min(ends_at, safety)

    def _resume_batch(self, conn: Connection) -> int:
        self._fence(conn)
        now = self.clock.now()
        found = pauses.over(conn, now, _BATCH)
        for job in found:
            try:
                with conn.begin_nested():
                    saved = jobs.save(conn, _resumed(conn, job, now))
                    audit.record(conn, _ended(job, saved))
                log.info("a pause has ended", action="resume", job=job.name, job_id=job.id)
            except Exception as exc:  # one bad row harms itself alone
                self._counters.set_aside += 1
                set_aside(conn, replace(job, paused_until=None), exc, now)
        return len(found)


def _resumed(conn: Connection, job: Job, now: datetime) -> Job:
    if job.state is JobState.CANCELLED:
        return replace(job, paused=False, paused_until=None, updated_at=now)
    job = replace(end_pause(conn, job, now), updated_at=now)
    work = facts.open_work_of(conn, job)
    return replace(job, state=resting(job, work, job.last_status))


def _ended(old: Job, saved: Job) -> AuditEntry:
    until = None if old.paused_until is None else old.paused_until.isoformat()
    return AuditEntry(
        at=saved.updated_at,
        actor="scheduler",
        action="resume",
        kind="job",
        subject_id=saved.id,
        before={"state": old.state.value, "paused": True, "paused_until": until},
        after={"state": saved.state.value, "paused": False, "paused_until": None},
        revision=saved.revision,
    )
