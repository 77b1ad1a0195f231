"""Notices what was changed by plain SQL: arms such jobs anew, as if the change had come through the API."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.execution import SkipReason
from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import Job, JobState
from noonday.domain.occurrences import next_after
from noonday.domain.planning import Lapse, arm, lapse
from noonday.engine.aside import set_aside
from noonday.engine.counters import Counters
from noonday.engine.fence import Fence, no_fence
from noonday.engine.loop import Actor, Wish
from noonday.store import audit, engine_versions, executions, facts, jobs, records
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.jobs import BadRow
from noonday.store.notices import JOBS
from noonday.store.releasing import resting

log = structlog.get_logger(__name__)

_BY_SQL = "the job was changed in the database itself"


@dataclass(frozen=True, slots=True, kw_only=True)
class WatcherConfig:
    check_interval: timedelta = timedelta(seconds=60)
    batch: int = 200


class Watcher(Actor):
    """Looks when the database tells of a change, and each `check_interval` where it cannot tell."""

    name = "watcher"
    gap = 0.1

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        counters: Counters,
        config: WatcherConfig,
        fence: Fence = no_fence,
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(JOBS))
        self._fence = fence
        self._db = db
        self._counters = counters
        self._config = config

    async def run_once(self) -> Wish:
        while await self._db.write(self._rearm_batch) == self._config.batch:
            pass
        return self._config.check_interval

    def _rearm_batch(self, conn: Connection) -> int:
        self._fence(conn)
        now = self.clock.now()
        found = jobs.changed(conn, self._config.batch)
        for job in found:
            if isinstance(job, BadRow):
                self._counters.set_aside += 1
                continue
            try:
                with conn.begin_nested():
                    saved = jobs.save(conn, rearmed(conn, engine_versions.of_its_time(conn, job), now))
                    audit.record(conn, _noticed(saved))
                log.info("a job changed by SQL is armed anew", action="watch", job=job.name, job_id=job.id)
            except Exception as exc:  # one bad row harms itself alone
                self._counters.set_aside += 1
                set_aside(conn, job, exc, now)
        return len(found)


def rearmed(conn: Connection, job: Job, now: datetime) -> Job:
    """What was planned is taken back, what was missed is recorded, and the schedule goes on from now."""
    cursor = job.next_run_at
    reason = _reason(job)
    job = executions.unplan(conn, job, now, reason)
    if reason is SkipReason.EDITED:
        job = replace(job, skipped_through=None)
    lapses: tuple[Lapse | None, ...] = ()
    if cursor is not None and cursor <= now:
        lapses = (lapse(replace(job, next_run_at=cursor), cursor, now, _reason(job), _BY_SQL),)
    if job.armed and is_fixed_delay(job.timing) and facts.chain_goes_on(conn, job.id):
        job = replace(job, next_run_at=None)  # the end of the open run makes the next one due
    elif job.armed:
        armed = arm(job, now)
        lapses += armed.lapses
        job = replace(job, next_run_at=armed.next_run_at, fire_count=armed.fire_count)
    elif job.state is JobState.CANCELLED:
        job = replace(job, next_run_at=None)
    else:  # from here on the cursor marks the first instant that falls into the rest
        rests_from = max(now, job.skipped_through or now)
        job = replace(job, next_run_at=next_after(job.timing, job.id, rests_from))
    executions.plan(conn, records.lapses(job, lapses, now))
    work = facts.open_work_of(conn, job)
    return replace(job, state=resting(job, work, job.last_status), updated_at=now)


def _noticed(job: Job) -> AuditEntry:
    """Nobody told who it was, or what the job was before."""
    return AuditEntry(job.updated_at, "sql", "plain sql", "job", job.id, revision=job.revision)


def _reason(job: Job) -> SkipReason:
    if job.state is JobState.CANCELLED:
        return SkipReason.CANCELLED
    if job.paused:
        return SkipReason.PAUSED
    return SkipReason.EDITED if job.enabled else SkipReason.DISABLED
