"""Settling: what ended attempts do to executions, jobs, retries, dependants and followers, in one step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy import Connection, Select, select, union

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState, WaitReason
from noonday.domain.job import Job, JobId, RetryPolicy
from noonday.domain.lifecycle import Settlement, next_after_completion
from noonday.domain.lifecycle import settle as decide
from noonday.domain.outcome import Deferred, Failed, Outcome
from noonday.domain.schedule import Interval, Manual, Timing
from noonday.domain.target import FetchTarget
from noonday.store import breakers, chains, dialects, outbox
from noonday.store.definitions import KEPT, jobs_of
from noonday.store.dialects import Answers
from noonday.store.execution_rows import (
    COLUMNS,
    attempt_values,
    read_execution,
    result_value,
    settled_values,
)
from noonday.store.facts import NOTHING_OPEN, OpenWork, open_work
from noonday.store.notices import JOBS, WORK, tell
from noonday.store.prepared import prepared
from noonday.store.reading import Row, RowError
from noonday.store.releasing import give_turns, resting
from noonday.store.rows import kept_from_row
from noonday.store.tables import ON_SUCCESS_OF, RUNNING, attempts, executions, job_dependencies, jobs

log = structlog.get_logger(__name__)

GOLDEN: Final = 0.6180339887498949  # spreads one chance evenly over a batch
_ALSO: Final = tuple(
    jobs.c[name]
    for name in ("lock_token", "lock_acquired_at", "last_status_for", "last_success_at", "last_success_for")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How an attempt ended, as told by whoever holds (or held) its lease."""

    execution_id: ExecutionId
    token: str
    outcome: Outcome
    started_at: datetime | None = None  # when it really began: it may have waited a moment for its slot
    ended_at: datetime | None = None  # an outage may lie between the end and its settling


def settle(
    conn: Connection, endings: Sequence[Ending], now: datetime, chance: float = 0.0
) -> list[Settlement]:
    """All or nothing for the batch; an ending whose token is stale changes nothing and is left out.

    So it may be repeated when the answer to its commit was lost.
    """
    told = {ending.execution_id: ending for ending in endings}
    if not told:
        return []
    rows = _lock_jobs(conn, told.keys())
    waited_for = {e.outcome.domain for e in endings if isinstance(e.outcome, Deferred)}
    held = breakers.holding(conn, waited_for)
    settling = _Settling(conn=conn, now=now, rows=rows, jobs=_readable(conn, rows, now), held=held)
    for place, execution in enumerate(_running(conn, told)):
        settling.decide(execution, told[execution.id], (chance + place * GOLDEN) % 1.0)
    if settling.done:
        settling.write()
    return settling.done


@prepared
def _jobs_concerned(dialect: Answers) -> Select[Any]:
    """The jobs and those that follow on their success, always in the same order: nobody waits in a circle."""
    mine = select(executions.c.job_id).where(dialect.listed(executions.c.id, "ids"))
    followers = (
        select(job_dependencies.c.job_id)
        .join(executions, executions.c.job_id == job_dependencies.c.parent_id)
        .where(dialect.listed(executions.c.id, "ids"), job_dependencies.c.kind == ON_SUCCESS_OF)
    )
    query = select(*KEPT, *_ALSO).where(jobs.c.id.in_(union(mine, followers))).order_by(jobs.c.id)
    return dialect.locked(query, jobs)


@prepared
def _running_among(dialect: Answers) -> Select[Any]:
    query = select(*COLUMNS).where(RUNNING, dialect.listed(executions.c.id, "ids"))
    return query.order_by(executions.c.id)


@prepared
def _tokens_of(dialect: Answers) -> Select[Any]:
    query = select(executions.c.job_id, executions.c.lease_token, executions.c.claimed_at)
    mine = query.where(RUNNING, dialect.listed(executions.c.job_id, "ids"))
    return mine.order_by(executions.c.claimed_at, executions.c.id)


def _lock_jobs(conn: Connection, ids: Collection[str]) -> dict[str, Row]:
    return {row["id"]: row for row in _jobs_concerned(conn, ids=ids).mappings().all()}


def _running(conn: Connection, told: Mapping[ExecutionId, Ending]) -> list[Execution]:
    """Those whose token is still the present one. Nobody changes state or token without the job's lock."""
    found = [read_execution(row) for row in _running_among(conn, ids=told.keys()).all()]
    return [execution for execution in found if execution.lease_token == told[execution.id].token]


def _readable(conn: Connection, rows: Mapping[str, Row], now: datetime) -> dict[str, Job]:
    """A run whose job became unreadable meanwhile still ends, only without retries."""
    found = jobs_of(conn, rows.values())
    return {i: _stand_in(rows[i], now) if isinstance(job, RowError) else job for i, job in found.items()}


def _stand_in(row: Row, now: datetime) -> Job:
    bare = Job(
        id=JobId(row["id"]),
        name=row["id"],
        timing=Timing(schedule=Manual(), anchor_at=now),
        target=FetchTarget(url=""),
        retry=RetryPolicy(max_retries=0),
        created_at=now,
        updated_at=now,
    )
    try:
        return replace(bare, **kept_from_row(row))
    except RowError:
        return bare


@dataclass(slots=True, kw_only=True)
class _Settling:
    """One batch on its way: what was decided, and the rows that follow from it."""

    conn: Connection
    now: datetime
    rows: Mapping[str, Row]  # of the locked jobs
    jobs: dict[str, Job]
    held: set[str]  # domains whose circuit breaker is not closed
    done: list[Settlement] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    tried: list[dict[str, Any]] = field(default_factory=list)
    given_back: list[dict[str, Any]] = field(default_factory=list)  # numbers of attempts that never began

    def decide(self, execution: Execution, ending: Ending, chance: float) -> None:
        job = self.jobs[execution.job_id]
        at = ending.ended_at or self.now
        if ending.started_at is not None:
            execution = replace(execution, started_at=ending.started_at)
        outcome = ending.outcome
        if isinstance(outcome, Deferred) and outcome.domain not in self.held:
            outcome = replace(
                outcome, until=self.now
            )  # it closed meanwhile: nobody will come to wake this one
        try:
            self._keep(decide(job, execution, outcome, at, chance))
        except Exception as exc:  # an outcome that cannot be kept must not hold back the others
            log.error("an outcome cannot be kept", execution_id=execution.id, action="settle", exc_info=exc)
            plain = Failed(error=f"the outcome cannot be kept: {exc!r}", retryable=False)
            self._keep(decide(job, execution, plain, at, chance))

    def _keep(self, settlement: Settlement) -> None:
        values, attempt = settled_values(settlement.execution), settlement.attempt
        if attempt is not None:
            same = attempt.result is settlement.execution.result
            result = values["result"] if same else result_value(attempt.result)
            self.tried.append(attempt_values(attempt) | {"result": result})
        elif settlement.execution.wait_reason is WaitReason.BREAKER:
            self.given_back.append({"id": values["id"], "attempt": settlement.execution.attempt})
        self.done.append(settlement)
        self.values.append(values)

    def write(self) -> None:
        dialect = dialects.of(self.conn)
        dialect.update(self.conn, executions, self.values)
        dialect.update(self.conn, executions, self.given_back)
        dialect.insert(self.conn, attempts, self.tried, ("execution_id", "number"))
        final = [settlement.execution for settlement in self.done if settlement.final]
        chains.follow(self.conn, final, self.jobs, self.now)
        self._update_jobs()
        outbox.add_failures(self.conn, [(self.jobs[e.job_id], e) for e in final], self.now)
        if any(not s.final and s.execution.available_at is not None for s in self.done):
            tell(self.conn, WORK)

    def _update_jobs(self) -> None:
        by_job: dict[str, list[Settlement]] = defaultdict(list)
        for settlement in self.done:
            by_job[settlement.execution.job_id].append(settlement)
        work = open_work(self.conn, list(self.jobs))
        give_turns(self.conn, self.jobs, work, self.now)
        tokens = self._running_tokens(by_job, work)
        settled = [self._job_values(i, by_job[i], work.get(i, NOTHING_OPEN), tokens.get(i)) for i in by_job]
        dialect = dialects.of(self.conn)
        dialect.update(self.conn, jobs, settled)
        others = []
        for job_id in self.jobs.keys() - by_job.keys():
            job = self.jobs[job_id]
            state = resting(job, work.get(job_id, NOTHING_OPEN), job.last_status)
            if state is not job.state:
                others.append({"id": job_id, "status": state.value})
        dialect.update(self.conn, jobs, others)

    def _running_tokens(
        self, by_job: Mapping[str, object], work: Mapping[str, OpenWork]
    ) -> dict[str, tuple[str, datetime]]:
        """Of jobs that still run: the lease of the newest run."""
        still = [job_id for job_id in by_job if work.get(job_id, NOTHING_OPEN).running]
        if not still:
            return {}
        return {job_id: (token, at) for job_id, token, at in _tokens_of(self.conn, ids=still)}

    def _job_values(
        self, job_id: str, ended: Sequence[Settlement], work: OpenWork, held: tuple[str, datetime] | None
    ) -> dict[str, Any]:
        job, row = self.jobs[job_id], self.rows[job_id]
        last = ended[-1].execution
        values: dict[str, Any] = {
            "id": job_id,
            "current_retry_count": last.failures if last.state in _RETRYING else 0,
            "lock_token": held[0] if held else None,
            "lock_acquired_at": held[1] if held else None,
            "last_status": row["last_status"],
            "last_status_for": row["last_status_for"],
            "last_success_at": row["last_success_at"],
            "last_success_for": row["last_success_for"],
            "next_run_at": job.next_run_at,
        }
        for settlement in ended:
            if settlement.final:
                values |= self._after_end(job, settlement.execution, values)
        if values["next_run_at"] != job.next_run_at:
            job = replace(job, next_run_at=values["next_run_at"])
        values["status"] = resting(job, work, values["last_status"]).value
        return values

    def _after_end(self, job: Job, execution: Execution, so_far: Mapping[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = {
            "last_status": execution.state.value,
            "last_status_for": execution.scheduled_for,
        }
        if execution.state is ExecutionState.COMPLETED:
            newest: datetime | None = so_far["last_success_for"]
            slot = execution.scheduled_for
            values["last_success_at"] = self.now
            values["last_success_for"] = slot if newest is None or slot > newest else newest
        if rearms(job, execution):
            values["next_run_at"] = next_after_completion(job, self.now)
            tell(self.conn, JOBS)
        return values


_RETRYING: Final = frozenset({ExecutionState.PENDING, ExecutionState.FAILED})


def rearms(job: Job, execution: Execution) -> bool:
    """Is it the end of this run that makes the job's next one due?"""
    schedule = job.timing.schedule
    chained = isinstance(schedule, Interval) and schedule.after_completion
    return chained and execution.cause is Cause.SCHEDULE and job.next_run_at is None and job.enabled
