"""What ended runs mean for the rows of their jobs: last status, next run, state, the lock others see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Select, select

from noonday.domain.admission import most_at_once
from noonday.domain.execution import Cause, Execution, ExecutionState
from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import Job
from noonday.domain.lifecycle import next_after_completion
from noonday.store import dialects
from noonday.store.dialects import Answers
from noonday.store.facts import NOTHING_OPEN, OpenWork, open_work
from noonday.store.notices import JOBS, tell
from noonday.store.prepared import quick
from noonday.store.releasing import give_turns, resting
from noonday.store.tables import RUNNING, executions, jobs


class Lock(NamedTuple):
    """What is read of a job when it is locked, beside the KEPT columns."""

    lock_token: str | None
    lock_acquired_at: datetime | None
    last_status_for: datetime | None
    last_success_at: datetime | None
    last_success_for: datetime | None


LOCKED: Final = tuple(jobs.c[name] for name in Lock._fields)
_LATELY: Final = timedelta(seconds=10)  # a lock that somebody else wrote into the row misleads no longer
_RETRYING: Final = frozenset({ExecutionState.PENDING, ExecutionState.FAILED})


class Settled(NamedTuple):
    """What the row of a job gets, by its columns."""

    current_retry_count: int
    lock_token: str | None
    lock_acquired_at: datetime | None
    last_status: str | None
    last_status_for: datetime | None
    last_success_at: datetime | None
    last_success_for: datetime | None
    next_run_at: datetime | None
    status: str


class Ended(NamedTuple):
    """An execution of which an attempt ended; of a success it is as it was claimed."""

    execution: Execution
    state: ExecutionState
    final: bool


@dataclass(slots=True, kw_only=True)
class SettledJobs:
    conn: Connection
    now: datetime
    locks: Mapping[str, Lock]  # of the jobs
    jobs: Mapping[str, Job]

    def write(self, ended: Iterable[Ended], dead: Collection[str]) -> None:
        """`dead`: the tokens of the leases that are over now."""
        by_job: dict[str, list[Ended]] = defaultdict(list)
        for one in ended:
            by_job[one.execution.job_id].append(one)
        work = self._surely_running(dead)
        work |= open_work(self.conn, {i: job for i, job in self.jobs.items() if i not in work})
        give_turns(self.conn, self.jobs, work, self.now)
        locks = self._locks(by_job, work, dead)
        settled = [
            self._settled(self.jobs[i], ends, work.get(i, NOTHING_OPEN), locks.get(i, (None, None)))
            for i, ends in by_job.items()
        ]
        each = dict(zip(Settled._fields, zip(*settled, strict=True), strict=True))
        if all(one.next_run_at is self.jobs[i].next_run_at for i, one in zip(by_job, settled, strict=True)):
            del each["next_run_at"]
        dialect = dialects.of(self.conn)
        dialect.change(self.conn, jobs, [*by_job], each, {})
        dialect.update(self.conn, jobs, self._others(by_job, work))

    def _others(self, by_job: Collection[str], work: Mapping[str, OpenWork]) -> list[dict[str, Any]]:
        """Jobs that were locked as well, for they follow one that ended."""
        moved = []
        for job_id in self.jobs.keys() - by_job:
            job = self.jobs[job_id]
            state = resting(job, work.get(job_id, NOTHING_OPEN), job.last_status)
            if state is not job.state:
                moved.append({"id": job_id, "status": state.value})
        return moved

    def _surely_running(self, dead: Collection[str]) -> dict[str, OpenWork]:
        """Jobs whose runs may overlap, and whose newest run began lately and has not ended: of these nobody
        need ask. Whoever ends the newest one asks."""
        lately = self.now - _LATELY
        found: dict[str, OpenWork] = {}
        for job_id, job in self.jobs.items():
            lock = self.locks[job_id]
            token, since = lock.lock_token, lock.lock_acquired_at
            alive = token is not None and token not in dead and since is not None and since > lately
            if alive and most_at_once(job) == inf:
                found[job_id] = OpenWork(running=1)
        return found

    def _locks(
        self, by_job: Iterable[str], work: Mapping[str, OpenWork], dead: Collection[str]
    ) -> dict[str, tuple[str, datetime]]:
        """Of jobs that still run: the lease of the newest run."""
        locks: dict[str, tuple[str, datetime]] = {}
        unknown = []
        for job_id in by_job:
            if work.get(job_id, NOTHING_OPEN).running:
                token, since, *_ = self.locks[job_id]
                if token is None or since is None or token in dead:
                    unknown.append(job_id)
                else:
                    locks[job_id] = token, since
        if unknown:
            locks |= {job_id: (token, at) for job_id, token, at in _tokens_of(self.conn, ids=unknown)}
        return locks

    def _settled(
        self,
        job: Job,
        ended: Sequence[Ended],
        work: OpenWork,
        lock: tuple[str, datetime] | tuple[None, None],
    ) -> Settled:
        _, _, status_for, success_at, success_for = self.locks[job.id]
        last_status, next_at = job.last_status, job.next_run_at
        for execution, state, final in ended:
            if not final:
                continue
            last_status, status_for = state.value, execution.scheduled_for
            if state is ExecutionState.COMPLETED:
                success_at = self.now
                if success_for is None or status_for > success_for:
                    success_for = status_for
            if rearms(job, execution):
                next_at = next_after_completion(job, self.now)
                tell(self.conn, JOBS)
        if next_at is not job.next_run_at:
            job = job.altered(next_run_at=next_at)
        last = ended[-1]
        return Settled(
            last.execution.failures if last.state in _RETRYING else 0,
            lock[0],
            lock[1],
            last_status,
            status_for,
            success_at,
            success_for,
            next_at,
            resting(job, work, last_status).value,
        )


@quick
def _tokens_of(dialect: Answers) -> Select[Any]:
    query = select(executions.c.job_id, executions.c.lease_token, executions.c.claimed_at)
    mine = query.where(RUNNING, dialect.listed(executions.c.job_id, "ids"))
    return mine.order_by(executions.c.claimed_at, executions.c.id)


def rearms(job: Job, execution: Execution) -> bool:
    """Is it the end of this run that makes the job's next one due?"""
    if job.next_run_at is not None or execution.cause is not Cause.SCHEDULE:
        return False
    return is_fixed_delay(job.timing) and job.enabled
