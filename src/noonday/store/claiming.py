"""Claims: which executions an instance may run now. Decided by the pure `admit`, for many at once."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final, assert_never

from sqlalchemy import Connection, Select, bindparam, select

from noonday.domain.admission import AdmitFacts, Replace, Skip, Start, Verdict, Wait, admit
from noonday.domain.execution import Execution, ExecutionId, ExecutionState, WaitReason
from noonday.domain.job import Job, Overlap
from noonday.ports import Claim
from noonday.store import dialects, facts, notices
from noonday.store.candidates import ClaimOrder, Search, claimable_among
from noonday.store.columns import Instant
from noonday.store.definitions import jobs_of
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared
from noonday.store.reading import Row, RowError, may_be_id
from noonday.store.releasing import ask_to_stop, rest
from noonday.store.tables import executions, jobs

ROUNDS: Final = 4  # looks for more when many candidates may not start
SOON: Final = timedelta(seconds=5)  # ahead by more than clocks may differ: its message came by mistake


def claim(conn: Connection, order: ClaimOrder) -> list[Claim]:
    """Executions that are due and may start, now running on a lease of the instance; high lanes first.

    Those that may not start are skipped or made to wait in the same step, with the reason.
    """
    return _claim(Search(conn=conn, order=order))


def claim_and_look_ahead(conn: Connection, order: ClaimOrder) -> tuple[list[Claim], datetime | None]:
    """As `claim`, and when the next execution becomes claimable; in the past if some are now."""
    search = Search(conn=conn, order=order)
    claims = _claim(search)
    return claims, search.next_at()


def _claim(search: Search) -> list[Claim]:
    claims: list[Claim] = []
    for _ in range(ROUNDS):
        wanted = search.order.limit - len(claims)
        candidates = search.take(wanted) if wanted > 0 else []
        if candidates:
            claims += _Batch(conn=search.conn, order=search.order).decide(candidates, search.kept)
        if len(candidates) < wanted or not candidates:
            break
    return claims


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of executions that the road named."""

    claims: list[Claim]
    later: Mapping[ExecutionId, datetime]  # due then, or due and held by another transaction: ask again
    done: frozenset[ExecutionId]  # nothing to do now; whatever makes it claimable puts it on the road anew


def claim_these(conn: Connection, order: ClaimOrder, ids: Collection[ExecutionId]) -> Taken:
    """Claim those of them that are due and may start, as `claim` does; an id is a hint, the row decides."""
    wanted = {execution_id for execution_id in ids if may_be_id(conn, execution_id)}
    search = Search(conn=conn, order=order)
    candidates = search.these(wanted) if wanted else []
    claims = _Batch(conn=conn, order=order).decide(candidates, search.kept) if candidates else []
    left = wanted - {claim.execution.id for claim in claims}
    later = _claimable(conn, left, order.now + SOON) if left else {}
    done = frozenset(ids) - {claim.execution.id for claim in claims} - later.keys()
    return Taken(claims=claims, later=later, done=done)


def _claimable(conn: Connection, ids: Collection[str], until: datetime) -> dict[ExecutionId, datetime]:
    """Asked after the verdicts were written: whatever was decided is no longer claimable."""
    found = _claimable_until(conn, ids=ids, until=until)
    return {ExecutionId(execution_id): at for execution_id, at in found}


@prepared
def _claimable_until(dialect: Answers) -> Select[Any]:
    query = select(executions.c.id, executions.c.available_at).where(claimable_among(dialect))
    return query.where(executions.c.available_at <= bindparam("until", type_=Instant))


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
    idle: dict[str, Job] = field(default_factory=dict)  # jobs of which a turn may be left over

    def decide(self, candidates: Sequence[dict[str, Any]], kept: Mapping[str, Row]) -> list[Claim]:
        mine = {values["job_id"] for values in candidates}
        found = jobs_of(self.conn, [kept[job_id] for job_id in mine])
        known = {job_id: job for job_id, job in found.items() if isinstance(job, Job)}
        tallies = self._tallies(known)
        above = {parent for job in known.values() for parent in job.depends_on}
        parents = facts.parents(self.conn, above, self.order.now)
        # What a breaker may send back once more comes last: the others are not skipped for its sake.
        for values in sorted(candidates, key=lambda values: values["wait_reason"] is WaitReason.BREAKER):
            job = found[values["job_id"]]
            execution = Execution(**values)
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
                self._note(job, execution, values, admit(job, execution, told, self.order.now), tally)
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

    def _note(
        self, job: Job, execution: Execution, values: dict[str, Any], verdict: Verdict, tally: _Tally
    ) -> None:
        tally.waiting -= execution.wait_reason is WaitReason.OVERLAP  # it has its turn now
        match verdict:
            case Start():
                self._start(job, execution, values, tally)
            case Skip(reason, detail):
                skipped = {"skip_reason": reason.value, "wait_reason": None, "detail": detail}
                self.skips.append({"id": execution.id} | skipped)
                notices.skipped(self.conn, job.id, reason)
                self.idle[job.id] = job
            case Wait(reason, detail):
                self._wait(job, execution, reason, detail, tally)
            case Replace(cancel):
                self.stops |= set(cancel)
                detail = "waits until the run it replaces has ended"
                self._wait(job, execution, WaitReason.OVERLAP, detail, tally)
            case _:
                assert_never(verdict)

    def _start(self, job: Job, execution: Execution, values: dict[str, Any], tally: _Tally) -> None:
        now = self.order.now
        tally.running += 1
        tally.ids += (execution.id,)
        values |= {
            "state": ExecutionState.RUNNING,
            "wait_reason": None,
            "detail": None,
            "attempt": execution.attempt + 1,
            "lease_token": self.order.mark + os.urandom(8).hex(),
            "lease_expires_at": now + self.order.lease,
            "deadline_at": now + job.timeout,
            "instance_id": self.order.instance_id,
            "claimed_at": now,
            "started_at": now,
            "progress": None,
            "progress_message": None,
        }
        self.claims.append(Claim(job, Execution(**values)))  # much faster than dataclasses.replace

    def _wait(self, job: Job, execution: Execution, reason: WaitReason, detail: str, tally: _Tally) -> None:
        if reason is WaitReason.OVERLAP:
            tally.waiting += 1
        elif execution.wait_reason is WaitReason.OVERLAP:
            self.idle[job.id] = job  # it cannot use its turn; the next one may
        self.waits.append({"id": execution.id, "wait_reason": reason.value, "detail": detail})

    def _unreadable(self, execution: Execution, error: RowError) -> None:
        self.failed.append({"id": execution.id, "error": f"the job's row cannot be read: {error}"})

    def _write(self) -> None:
        dialect, now = dialects.of(self.conn), self.order.now
        dialect.update(self.conn, executions, [_started(claim.execution) for claim in self.claims])
        dialect.update(self.conn, jobs, _locked(self.claims))
        skipped = {"state": "skipped", "skipped_count": 1, "completed_at": now, "enqueued_at": None}
        ended = [row | skipped for row in self.skips]
        dialect.update(self.conn, executions, ended)
        failed = [row | {"state": "failed", "completed_at": now, "enqueued_at": None} for row in self.failed]
        dialect.update(self.conn, executions, failed)
        waits = [row | {"state": "pending", "available_at": None, "enqueued_at": None} for row in self.waits]
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
        "enqueued_at": None,  # should it become claimable once more, it has to be put on the road anew
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
