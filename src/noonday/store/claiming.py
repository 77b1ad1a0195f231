"""Claims: which executions an instance may run now. Decided by the pure `admit`, for many at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import inf
from typing import Any, Final, assert_never

from sqlalchemy import Connection, Select, bindparam, select

from noonday.domain.admission import (
    AdmitFacts,
    Replace,
    Skip,
    Start,
    Verdict,
    Wait,
    admit,
    certain_since,
    most_at_once,
)
from noonday.domain.execution import Execution, ExecutionId, ExecutionState, WaitReason
from noonday.domain.job import Job, Overlap
from noonday.ports import Claim
from noonday.store import dialects, facts, notices
from noonday.store.bulk import Change, Columns
from noonday.store.candidates import ClaimOrder, Search, claimable_among, whole
from noonday.store.columns import Instant
from noonday.store.definitions import jobs_of
from noonday.store.dialects import Answers
from noonday.store.execution_rows import Waiting, first_attempts, started_fields, waiting_fields
from noonday.store.prepared import quick
from noonday.store.reading import RowError, may_be_id
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
    """As `claim`, and when the next execution becomes claimable; in the past if some may be now."""
    search = Search(conn=conn, order=order)
    claims = _claim(search)
    return claims, search.next_at() if len(claims) < order.limit else order.now


def _claim(search: Search) -> list[Claim]:
    claims: list[Claim] = []
    for _ in range(ROUNDS):
        wanted = search.order.limit - len(claims)
        candidates = search.take(wanted) if wanted > 0 else []
        if candidates:
            claims += Batch(conn=search.conn, order=search.order).decide(candidates, search.kept)
        if len(candidates) < wanted or not candidates:
            break
    return claims


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What became of executions that the road named."""

    claims: list[Claim]
    later: Mapping[ExecutionId, datetime]  # due then, or due and held by another transaction: ask again
    done: Sequence[ExecutionId]  # nothing to do now; whatever makes it claimable puts it on the road anew


def claim_these(conn: Connection, order: ClaimOrder, ids: Collection[ExecutionId]) -> Taken:
    """Claim those of them that are due and may start, as `claim` does; an id is a hint, the row decides."""
    wanted = [execution_id for execution_id in ids if may_be_id(conn, execution_id)]
    search = Search(conn=conn, order=order)
    candidates = search.these(wanted) if wanted else []
    claims = Batch(conn=conn, order=order).decide(candidates, search.kept) if candidates else []
    return taken(conn, order, ids, claims)


def taken(conn: Connection, order: ClaimOrder, ids: Collection[ExecutionId], claims: list[Claim]) -> Taken:
    """What became of these, once those that may start are claimed."""
    claimed = {claim.execution.id for claim in claims}
    left = [one for one in ids if one not in claimed and may_be_id(conn, one)]
    later = _claimable(conn, left, order.now + SOON) if left else {}
    done = [one for one in ids if one not in claimed and one not in later]
    return Taken(claims=claims, later=later, done=done)


def _claimable(conn: Connection, ids: Collection[str], until: datetime) -> dict[ExecutionId, datetime]:
    """Asked after the verdicts were written: whatever was decided is no longer claimable."""
    found = _claimable_until(conn, ids=ids, until=until)
    return {ExecutionId(execution_id): at for execution_id, at in found}


@quick
def _claimable_until(dialect: Answers) -> Select[Any]:
    query = select(executions.c.id, executions.c.available_at).where(claimable_among(dialect))
    return query.where(executions.c.available_at <= bindparam("until", type_=Instant))


@dataclass(slots=True)
class _Tally:
    """What is going on with one job, kept up to date while its candidates are decided one after the other."""

    most: float  # that may run beside each other
    certain_since: datetime | None  # what became available since then starts, if one more may run
    running: int = 0
    waiting: int = 0
    ids: tuple[ExecutionId, ...] = ()


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch of candidates and the rows that follow from the verdicts."""

    conn: Connection
    order: ClaimOrder
    claims: list[Claim] = field(default_factory=list)
    skips: list[dict[str, Any]] = field(default_factory=list)
    waits: list[dict[str, Any]] = field(default_factory=list)
    failed: list[dict[str, Any]] = field(default_factory=list)
    stops: set[ExecutionId] = field(default_factory=set)
    idle: dict[str, Job] = field(default_factory=dict)  # jobs of which a turn may be left over
    made: Callable[[Connection], object] | None = None  # what writes the claims, where it is known beforehand

    def decide(self, candidates: Sequence[Waiting], kept: Mapping[str, Sequence[Any]]) -> list[Claim]:
        concerned = dict.fromkeys(one.job_id for one in candidates)
        found = jobs_of(self.conn, [kept[job_id] for job_id in concerned])
        known = {job_id: job for job_id, job in found.items() if isinstance(job, Job)}
        tallies = self._tallies(known)
        above = {parent for job in known.values() for parent in job.depends_on}
        parents = facts.parents(self.conn, above, self.order.now)
        touched = whole(self.conn, [one.id for one in candidates if not one.untouched])
        tokens = self._tokens(len(candidates))
        first = first_attempts(self.order.now, self.order.lease_until, self.order.instance_id)
        for one in _in_turn(candidates):
            job = found[one.job_id]
            if isinstance(job, RowError):
                self._unreadable(one.id, job)
            elif _certain(one, tallies[one.job_id]):
                self._start_first(job, one, tallies[one.job_id], next(tokens), first)
            elif one.available_at <= self.order.now and parents.settled_for(job.depends_on):
                values = touched.get(one.id) or waiting_fields(one)
                self._judge(job, values, tallies[one.job_id], parents, next(tokens))
        self.write()
        return self.claims

    def start_all(self, candidates: Sequence[Waiting], known: Mapping[str, Job]) -> bool:
        """Start them if all are of these jobs, of which any number may run, and nobody need be asked about
        any of them; otherwise nothing is to be written."""
        tallies = {job_id: _Tally(inf, certain_since(job, self.order.now)) for job_id, job in known.items()}
        if not all(one.job_id in tallies and _certain(one, tallies[one.job_id]) for one in candidates):
            return False
        tokens = self._tokens(len(candidates))
        first = first_attempts(self.order.now, self.order.lease_until, self.order.instance_id)
        for one in candidates:
            self._start_first(known[one.job_id], one, tallies[one.job_id], next(tokens), first)
        self.made = self._both()
        return True

    def _tokens(self, count: int) -> Iterator[str]:
        """Each with the mark of the claim, and chance enough that nobody guesses it."""
        mark, chance = self.order.mark, os.urandom(8 * count).hex()
        return iter([mark + chance[at : at + 16] for at in range(0, len(chance), 16)])

    def _judge(
        self, job: Job, values: dict[str, Any], tally: _Tally, parents: facts.Parents, token: str
    ) -> None:
        execution = Execution.of(values)
        seen = [
            parents.by_id[parent].seen_from(parent, execution)
            for parent in job.depends_on
            if parent in parents.by_id
        ]
        told = AdmitFacts(
            running=tally.running,
            waiting_for_turn=tally.waiting - (execution.wait_reason is WaitReason.OVERLAP),
            running_ids=tally.ids,
            parents=tuple(seen),
        )
        self._note(job, execution, values, admit(job, execution, told, self.order.now), tally, token)

    def _tallies(self, known: dict[str, Job]) -> dict[str, _Tally]:
        policies = {job_id: job.overlapping.overlap for job_id, job in known.items()}
        limited = [job_id for job_id, overlap in policies.items() if overlap is not Overlap.ALLOW]
        running = facts.running_counts(self.conn, limited)
        choosy = [job_id for job_id in limited if policies[job_id] is Overlap.QUEUE_ONE]
        waiting = facts.waiting_for_turn(self.conn, choosy)
        replacing = [job_id for job_id in limited if policies[job_id] is Overlap.REPLACE]
        ids = facts.running_ids(self.conn, replacing)
        now = self.order.now
        return {
            job_id: _Tally(
                most_at_once(job),
                certain_since(job, now),
                running.get(job_id, 0),
                waiting.get(job_id, 0),
                ids.get(job_id, ()),
            )
            for job_id, job in known.items()
        }

    def _note(
        self,
        job: Job,
        execution: Execution,
        values: dict[str, Any],
        verdict: Verdict,
        tally: _Tally,
        token: str,
    ) -> None:
        tally.waiting -= execution.wait_reason is WaitReason.OVERLAP  # it has its turn now
        match verdict:
            case Start():
                self._start(job, execution, values, tally, token)
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

    def _start_first(self, job: Job, one: Waiting, tally: _Tally, token: str, alike: dict[str, Any]) -> None:
        now, moment = self.order.now, one.available_at
        starts_at = moment if moment > now else now
        values = started_fields(one, job, alike, token, starts_at)
        self._begin(job, Execution.of(values), tally)

    def _start(
        self, job: Job, execution: Execution, values: dict[str, Any], tally: _Tally, token: str
    ) -> None:
        now = self.order.now
        changes = {
            "state": ExecutionState.RUNNING,
            "wait_reason": None,
            "detail": None,
            "attempt": execution.attempt + 1,
            "lease_token": token,
            "lease_expires_at": self.order.lease_until,
            "deadline_at": now + job.timeout,
            "instance_id": self.order.instance_id,
            "claimed_at": now,
            "started_at": now,
            "progress": None,
            "progress_message": None,
        }
        self._begin(job, Execution.of(values | changes), tally)

    def _begin(self, job: Job, execution: Execution, tally: _Tally) -> None:
        tally.running += 1
        if tally.most != inf:
            tally.ids += (execution.id,)
        self.claims.append(Claim(job, execution))

    def _wait(self, job: Job, execution: Execution, reason: WaitReason, detail: str, tally: _Tally) -> None:
        if reason is WaitReason.OVERLAP:
            tally.waiting += 1
        elif execution.wait_reason is WaitReason.OVERLAP:
            self.idle[job.id] = job  # it cannot use its turn; the next one may
        self.waits.append({"id": execution.id, "wait_reason": reason.value, "detail": detail})

    def _unreadable(self, execution_id: ExecutionId, error: RowError) -> None:
        self.failed.append({"id": execution_id, "error": f"the job's row cannot be read: {error}"})

    def write(self) -> None:
        dialect, now = dialects.of(self.conn), self.order.now
        if self.claims:
            change = self.made or self._both()
            change(self.conn)
        skipped = {"state": "skipped", "skipped_count": 1, "completed_at": now, "enqueued_at": None}
        ended = [row | skipped for row in self.skips]
        dialect.update(self.conn, executions, ended)
        failed = [row | {"state": "failed", "completed_at": now, "enqueued_at": None} for row in self.failed]
        dialect.update(self.conn, executions, failed)
        waits = [row | {"state": "pending", "available_at": None, "enqueued_at": None} for row in self.waits]
        dialect.update(self.conn, executions, waits)
        if self.idle:
            begun = {claim.job.id for claim in self.claims}
            rest(self.conn, {i: job for i, job in self.idle.items() if i not in begun}, now)
        if self.stops:
            ask_to_stop(self.conn, self.stops, "a newer run of the job", now)

    def _both(self) -> Callable[[Connection], object]:
        return dialects.of(self.conn).change_both(self._begun(), self._locks())

    def _begun(self) -> Change:
        begun = [claim.execution for claim in self.claims]
        each: Columns = {
            "attempt": [one.attempt for one in begun],
            "lease_token": [one.lease_token for one in begun],
            "deadline_at": [one.deadline_at for one in begun],
            "started_at": [one.started_at for one in begun],
        }
        same = {
            "state": "running",
            "wait_reason": None,
            "detail": None,
            "lease_expires_at": self.order.lease_until,
            "instance_id": self.order.instance_id,
            "claimed_at": self.order.now,
            "progress": None,
            "progress_message": None,
            "enqueued_at": None,  # should it become claimable once more, it is put on the road anew
        }
        return Change(executions, [one.id for one in begun], each, same)

    def _locks(self) -> Change:
        """The lock that other tools read on the job: the lease of its newest run."""
        newest = {claim.job.id: claim for claim in self.claims}
        begun = {one.job.id: one.execution.started_at for one in self.claims if one.execution.attempt == 1}
        each: Columns = {
            "lock_token": [one.execution.lease_token for one in newest.values()],
            "last_run_at": [begun.get(job_id, one.job.last_run_at) for job_id, one in newest.items()],
        }
        return Change(jobs, [*newest], each, {"status": "running", "lock_acquired_at": self.order.now})


def _in_turn(candidates: Sequence[Waiting]) -> Iterable[Waiting]:
    """What a breaker may send back once more comes last: the others are not skipped for its sake."""
    if all(one.wait_reason is None for one in candidates):
        return candidates
    return sorted(candidates, key=lambda one: one.wait_reason == WaitReason.BREAKER)


def _certain(one: Waiting, tally: _Tally) -> bool:
    """Need nobody be asked whether it starts?"""
    since = tally.certain_since
    fresh = one.attempt == 0 and one.claimed_at is None and one.wait_reason is None
    return fresh and since is not None and one.available_at >= since and tally.running < tally.most
