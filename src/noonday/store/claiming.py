"""Claims: which executions an instance may run now. Decided by the pure `admit`, for many at once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, assert_never

from sqlalchemy import Connection, select

from noonday.domain.admission import AdmitFacts, Replace, Skip, Start, Verdict, Wait, admit
from noonday.domain.execution import Execution, ExecutionId, ExecutionState, WaitReason
from noonday.domain.job import Job, Lane, Overlap
from noonday.ports import Claim
from noonday.store import dialects, facts
from noonday.store.definitions import KEPT, jobs_of
from noonday.store.execution_rows import COLUMNS, FIELDS, execution_from
from noonday.store.reading import RowError
from noonday.store.releasing import ask_to_stop, rest
from noonday.store.tables import CLAIMABLE, executions, jobs

AGED_SHARE: Final = 1 / 8  # of each claim, for work of lower lanes that has waited too long
ROUNDS: Final = 4  # looks for more when many candidates may not start


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOrder:
    instance_id: str
    limit: int
    now: datetime
    lease: timedelta
    ageing: timedelta = timedelta(minutes=5)  # after this long, lower lanes get a share before higher ones


def claim(conn: Connection, order: ClaimOrder) -> list[Claim]:
    """Executions that are due and may start, now running on a lease of the instance; high lanes first.

    Those that may not start are skipped or made to wait in the same step, with the reason.
    """
    claims: list[Claim] = []
    for _ in range(ROUNDS):
        wanted = order.limit - len(claims)
        candidates = _candidates(conn, order, wanted)
        if not candidates:
            break
        claims += _Batch(conn=conn, order=order).decide(candidates)
        if len(claims) >= order.limit or len(candidates) < wanted:
            break
    return claims


def next_available_at(conn: Connection) -> datetime | None:
    """When the next execution becomes claimable; in the past if some are now."""
    return min((at for at in _heads(conn).values() if at is not None), default=None)


def _heads(conn: Connection) -> dict[Lane, datetime | None]:
    """The earliest of each lane: three looks at the front of an index."""
    looks = [
        select(executions.c.available_at)
        .where(CLAIMABLE, executions.c.lane == lane.value)
        .order_by(executions.c.available_at)
        .limit(1)
        .scalar_subquery()
        .label(lane.name)
        for lane in Lane
    ]
    found = conn.execute(select(*looks)).one()
    return dict(zip(Lane, found, strict=True))


Candidate = tuple[dict[str, Any], dict[str, Any]]  # the execution's values and the job's kept ones
_WIDTH = len(FIELDS)
_KEPT_NAMES = tuple(column.name for column in KEPT)


def _candidates(conn: Connection, order: ClaimOrder, wanted: int) -> list[Candidate]:
    heads = {lane: at for lane, at in _heads(conn).items() if at is not None and at <= order.now}
    found: dict[str, Candidate] = {}
    long_ago = order.now - order.ageing
    share = _aged_share(wanted, order.now)
    for lane in sorted(heads, reverse=True):
        if lane is not min(heads) and heads[lane] <= long_ago and share > len(found):
            found |= _look(conn, lane, long_ago, share - len(found))
    for lane in sorted(heads):
        if len(found) < wanted:
            found |= _look(conn, lane, order.now, wanted)
    return list(found.values())[:wanted]


def _aged_share(wanted: int, now: datetime) -> int:
    """Whole slots by the share, one more as often as the rest says; the clock's last digits are the die."""
    die = now.microsecond % 1000 / 1000
    return int(wanted * AGED_SHARE + 1 - die)


def _look(conn: Connection, lane: Lane, until: datetime, limit: int) -> dict[str, Candidate]:
    """In two steps, so that PostgreSQL reads no more of the index than the limit, however much is due."""
    dialect = dialects.of(conn)
    front = (
        select(*COLUMNS)
        .where(CLAIMABLE, executions.c.lane == lane.value, executions.c.available_at <= until)
        .order_by(executions.c.available_at)
        .limit(limit)
    )
    picked = dialect.skip_locked(front, executions).cte("picked")
    query = (
        select(*picked.c, *KEPT)
        .join_from(picked, jobs, jobs.c.id == picked.c.job_id)
        .order_by(picked.c.available_at)
    )
    return {
        row[0]: (
            dict(zip(FIELDS, row[:_WIDTH], strict=True)),
            dict(zip(_KEPT_NAMES, row[_WIDTH:], strict=True)),
        )
        for row in conn.execute(dialect.skip_locked(query, jobs))
    }


@dataclass(slots=True, kw_only=True)
class _Tally:
    """What is going on with one job, kept up to date while its candidates are decided one after the other."""

    running: int = 0
    waiting: int = 0
    ids: tuple[ExecutionId, ...] = ()


@dataclass(slots=True, kw_only=True)
class _Batch:
    """One batch of candidates and the rows that follow from the verdicts."""

    conn: Connection
    order: ClaimOrder
    claims: list[Claim] = field(default_factory=list)
    skips: list[dict[str, Any]] = field(default_factory=list)
    waits: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    stops: set[ExecutionId] = field(default_factory=set)
    idle: dict[str, Job] = field(default_factory=dict)  # jobs of which something was skipped

    def decide(self, candidates: Sequence[Candidate]) -> list[Claim]:
        found = jobs_of(self.conn, [kept for _, kept in candidates])
        known = {job_id: job for job_id, job in found.items() if isinstance(job, Job)}
        tallies = self._tallies(known)
        above = {parent for job in known.values() for parent in job.depends_on}
        parents = facts.parents(self.conn, above, self.order.now)
        for values, _ in candidates:
            job = found[values["job_id"]]
            execution = execution_from(values)
            if isinstance(job, RowError):
                self._unreadable(execution, job)
            elif parents.settled_for(job.depends_on):
                seen = [
                    parents.by_id[parent].seen_from(parent, execution)
                    for parent in job.depends_on
                    if parent in parents.by_id
                ]
                tally = tallies[job.id]
                told = AdmitFacts(
                    running=tally.running,
                    waiting_for_turn=tally.waiting - (execution.wait_reason is WaitReason.OVERLAP),
                    running_ids=tally.ids,
                    parents=tuple(seen),
                )
                self._note(job, execution, admit(job, execution, told, self.order.now), tally)
        self._write()
        return self.claims

    def _tallies(self, known: dict[str, Job]) -> dict[str, _Tally]:
        by_policy: dict[Overlap, list[str]] = {overlap: [] for overlap in Overlap}
        for job_id, job in known.items():
            by_policy[job.overlapping.overlap].append(job_id)
        limited = [i for overlap, of in by_policy.items() if overlap is not Overlap.ALLOW for i in of]
        running = facts.running_counts(self.conn, limited)
        waiting = facts.waiting_for_turn(self.conn, by_policy[Overlap.QUEUE_ONE])
        ids = facts.running_ids(self.conn, by_policy[Overlap.REPLACE])
        return {
            job_id: _Tally(
                running=running.get(job_id, 0), waiting=waiting.get(job_id, 0), ids=ids.get(job_id, ())
            )
            for job_id in known
        }

    def _note(self, job: Job, execution: Execution, verdict: Verdict, tally: _Tally) -> None:
        match verdict:
            case Start():
                self._start(job, execution, tally)
            case Skip(reason, detail):
                skipped = {"skip_reason": reason.value, "wait_reason": None, "detail": detail}
                self.skips.append({"id": execution.id} | skipped)
                self.idle[job.id] = job
            case Wait(reason, detail):
                self._wait(execution, reason, detail, tally)
            case Replace(cancel):
                self.stops |= set(cancel)
                self._wait(execution, WaitReason.OVERLAP, "waits until the run it replaces has ended", tally)
            case _:
                assert_never(verdict)

    def _start(self, job: Job, execution: Execution, tally: _Tally) -> None:
        now = self.order.now
        tally.running += 1
        tally.ids += (execution.id,)
        if execution.wait_reason is WaitReason.OVERLAP:
            tally.waiting -= 1
        started = replace(
            execution,
            state=ExecutionState.RUNNING,
            wait_reason=None,
            detail=None,
            attempt=execution.attempt + 1,
            lease_token=os.urandom(16).hex(),
            lease_expires_at=now + self.order.lease,
            deadline_at=now + job.timeout,
            instance_id=self.order.instance_id,
            claimed_at=now,
            started_at=now,
            progress=None,
            progress_message=None,
        )
        self.claims.append(Claim(job, started))

    def _wait(self, execution: Execution, reason: WaitReason, detail: str, tally: _Tally) -> None:
        if reason is WaitReason.OVERLAP and execution.wait_reason is not WaitReason.OVERLAP:
            tally.waiting += 1
        self.waits.append({"id": execution.id, "wait_reason": reason.value, "detail": detail})

    def _unreadable(self, execution: Execution, error: RowError) -> None:
        self.failed.append({"id": execution.id, "error": f"the job's row cannot be read: {error}"})

    def _write(self) -> None:
        dialect, now = dialects.of(self.conn), self.order.now
        dialect.update(self.conn, executions, [_started(claim.execution) for claim in self.claims])
        dialect.update(self.conn, jobs, _locked(self.claims))
        ended = [row | {"state": "skipped", "skipped_count": 1, "completed_at": now} for row in self.skips]
        dialect.update(self.conn, executions, ended)
        failed = [row | {"state": "failed", "completed_at": now} for row in self.failed]
        dialect.update(self.conn, executions, failed)
        waits = [row | {"state": "pending", "available_at": None} for row in self.waits]
        dialect.update(self.conn, executions, waits)
        for claim in self.claims:
            self.idle.pop(claim.job.id, None)
        rest(self.conn, self.idle, now)
        if self.stops:
            ask_to_stop(self.conn, self.stops, "a newer run of the job", now)


def _started(execution: Execution) -> dict[str, Any]:
    return {
        "id": execution.id,
        "state": "running",
        "wait_reason": None,
        "detail": None,
        "attempt": execution.attempt,
        "lease_token": execution.lease_token,
        "lease_expires_at": execution.lease_expires_at,
        "deadline_at": execution.deadline_at,
        "instance_id": execution.instance_id,
        "claimed_at": execution.claimed_at,
        "started_at": execution.started_at,
        "progress": None,
        "progress_message": None,
    }


def _locked(claims: Sequence[Claim]) -> list[dict[str, Any]]:
    """The lock that other tools read on the job: the lease of its newest run."""
    newest = {claim.job.id: claim for claim in claims}
    return [
        {
            "id": job_id,
            "status": "running",
            "lock_token": claim.execution.lease_token,
            "lock_acquired_at": claim.execution.claimed_at,
            "last_run_at": claim.execution.claimed_at
            if claim.execution.attempt == 1
            else claim.job.last_run_at,
        }
        for job_id, claim in newest.items()
    ]
