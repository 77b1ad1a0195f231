"""Settling: what ended attempts do to executions, jobs, retries, dependants and followers, in one step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast

import structlog
from sqlalchemy import Connection, Select, select

from noonday.domain.execution import Execution, ExecutionId, ExecutionState, WaitReason
from noonday.domain.job import Job, JobId, RetryPolicy
from noonday.domain.lifecycle import Settlement
from noonday.domain.lifecycle import settle as decide
from noonday.domain.outcome import Completed, Deferred, Failed, Outcome
from noonday.domain.schedule import Manual, Timing
from noonday.domain.target import FetchTarget
from noonday.ports import Claim
from noonday.store import breakers, chains, dialects, outbox
from noonday.store.bulk import Columns
from noonday.store.definitions import KEPT, KEPT_NAMES, jobs_of
from noonday.store.dialects import Answers
from noonday.store.execution_rows import (
    COLUMNS,
    attempt_values,
    read_execution,
    result_value,
    settled_values,
)
from noonday.store.notices import WORK, tell
from noonday.store.prepared import quick
from noonday.store.reading import RowError
from noonday.store.rows import kept_from_row
from noonday.store.settled_jobs import LOCKED, Ended, Lock, SettledJobs
from noonday.store.shortcuts import NOTHING, Asked
from noonday.store.tables import HAS_STATE, attempts, executions, jobs

log = structlog.get_logger(__name__)

GOLDEN: Final = 0.6180339887498949  # spreads one chance evenly over a batch


@dataclass(slots=True, kw_only=True)
class Ending:
    """How an attempt ended, as told by whoever holds (or held) its lease."""

    execution_id: ExecutionId
    token: str
    outcome: Outcome
    started_at: datetime | None = None  # when it really began: it may have waited a moment for its slot
    ended_at: datetime | None = None  # an outage may lie between the end and its settling
    claim: Claim | None = None  # known to whoever ran it: then its row need not be read again


def settle(
    conn: Connection, endings: Sequence[Ending], now: datetime, chance: float = 0.0
) -> list[Settlement]:
    """All or nothing for the batch; an ending whose token is stale changes nothing and is left out.

    So it may be repeated when the answer to its commit was lost.
    """
    told = {ending.execution_id: ending for ending in endings}
    if not told:
        return []
    settling = _begin(conn, told, now)
    settling.judge(told, chance)
    settling.write()
    return settling.done


class Ends(NamedTuple):
    """What became of endings that were told together."""

    settled: set[ExecutionId]  # those that were not stale
    left: Set[ExecutionId] = frozenset()  # of jobs that somebody else holds: to be told again


class Beside:
    """What else goes on in the transaction of a settling: nothing."""

    def ask(self) -> None:
        """To be answered with the locks on the jobs."""

    def locked(self, found: Mapping[str, Job | RowError]) -> None:
        """These jobs are ours, and nothing is written yet."""

    def work(self) -> None:
        """While the database writes the ends."""


def settle_held(
    conn: Connection,
    endings: Sequence[Ending],
    now: datetime,
    chance: float = 0.0,
    *,
    wait: bool = True,
    beside: Beside | None = None,
) -> Ends:
    """As `settle`, for endings told by those who ran them. Most runs succeed: of those only the tokens are
    compared.

    Without `wait`, those of jobs that somebody else holds are left: whoever waits for one job holds others
    meanwhile, and claims pass by them. If none of their jobs is free it waits all the same, holding nothing.
    """
    told = {ending.execution_id: ending for ending in endings}
    if not told:
        return Ends(set())
    beside = beside or Beside()
    settling = _begin(conn, told, now, wait, beside)
    left = {one.execution_id for one in told.values() if settling.lacks(one)}
    others = settling.succeed(one for one in told.values() if one.execution_id not in left)
    beside.work()
    settling.hear()
    settling.judge(others, chance)
    settling.write()
    settled = {one.id for one in settling.succeeded} | {one.execution.id for one in settling.done}
    return Ends(settled, left)


def _begin(
    conn: Connection,
    told: Mapping[ExecutionId, Ending],
    now: datetime,
    wait: bool = True,
    beside: Beside | None = None,
) -> _Settling:
    concerned = _concerned(conn, told)
    beside = beside or Beside()
    beside.ask()
    free = NOTHING if wait else _free_jobs.ask(conn, ids=concerned)
    edges = chains.below(conn, concerned)
    wanted = concerned | chains.followers(edges)
    rows = free.rows()
    passing = bool(rows)
    if not passing:
        rows = _jobs_to_lock(conn, ids=wanted)
    elif behind := wanted - concerned:
        rows = [*rows, *_free_jobs(conn, ids=behind)]
    found = jobs_of(conn, rows)
    beside.locked(found)
    waited_for = {e.outcome.domain for e in told.values() if isinstance(e.outcome, Deferred)}
    return _Settling(
        conn=conn,
        now=now,
        locks={row[0]: Lock._make(row[len(KEPT) :]) for row in rows},
        jobs=_readable(found, rows, now),
        edges=edges,
        held=breakers.holding(conn, waited_for),
        passed_by=_passed_by(wanted - {row[0] for row in rows}, edges) if passing else frozenset(),
    )


def _passed_by(missing: Collection[str], edges: chains.Edges) -> Collection[str]:
    """Jobs that lack their own lock or that of one that follows them."""
    if not missing:
        return frozenset()
    above = {parent for parent, under in edges.items() if any(child in missing for child, _ in under)}
    return above.union(missing)


@quick
def _jobs_to_lock(dialect: Answers) -> Select[Any]:
    return dialect.locked(_to_lock(dialect), jobs)


@quick
def _free_jobs(dialect: Answers) -> Select[Any]:
    return dialect.skip_locked(_to_lock(dialect), jobs)


def _to_lock(dialect: Answers) -> Select[Any]:
    """Always in the same order: nobody waits in a circle."""
    return select(*KEPT, *LOCKED).where(dialect.listed(jobs.c.id, "ids")).order_by(jobs.c.id)


@quick
def _job_ids(dialect: Answers) -> Select[Any]:
    return select(executions.c.job_id).where(dialect.listed(executions.c.id, "ids")).distinct()


@quick
def _running_among(dialect: Answers) -> Select[Any]:
    query = select(*COLUMNS).where(HAS_STATE == "running", dialect.listed(executions.c.id, "ids"))
    return query.order_by(executions.c.id)


def _concerned(conn: Connection, told: Mapping[ExecutionId, Ending]) -> set[str]:
    job_ids: set[str] = {one.claim.job.id for one in told.values() if one.claim is not None}
    unknown = [one.execution_id for one in told.values() if one.claim is None]
    return job_ids | {row[0] for row in _job_ids(conn, ids=unknown)} if unknown else job_ids


def _running(conn: Connection, told: Mapping[ExecutionId, Ending]) -> list[Execution]:
    """Those whose token is still the present one. Nobody changes state or token without the job's lock."""
    found = [read_execution(row) for row in _running_among(conn, ids=told.keys())]
    return [execution for execution in found if execution.lease_token == told[execution.id].token]


def _readable(
    found: Mapping[str, Job | RowError], rows: Sequence[Sequence[Any]], now: datetime
) -> dict[str, Job]:
    """A run whose job became unreadable meanwhile still ends, only without retries."""
    stand_ins = {row[0]: _stand_in(row, now) for row in rows if isinstance(found.get(row[0]), RowError)}
    return cast(dict[str, Job], {**found, **stand_ins})


def _stand_in(row: Sequence[Any], now: datetime) -> Job:
    bare = Job(
        id=JobId(row[0]),
        name=row[0],
        timing=Timing(schedule=Manual(), anchor_at=now),
        target=FetchTarget(url=""),
        retry=RetryPolicy(max_retries=0),
        created_at=now,
        updated_at=now,
    )
    try:
        return replace(bare, **kept_from_row(dict(zip(KEPT_NAMES, row, strict=False))))
    except RowError:
        return bare


class _Successes(NamedTuple):
    """Runs that succeeded, side by side."""

    runs: list[Execution]  # as they were claimed
    tokens: dict[str, str]
    started_at: list[datetime | None]
    ended_at: list[datetime]
    results: list[dict[str, Any] | None]

    @classmethod
    def among(cls, endings: Iterable[Ending], now: datetime) -> tuple[_Successes, dict[ExecutionId, Ending]]:
        """And the others. A success means the same whatever happened to its row meanwhile, if only the token
        lives; of one whose claim is not known the row must be read."""
        made, others = cls([], {}, [], [], []), {}
        for one in endings:
            claim, outcome = one.claim, one.outcome
            if claim is None or not isinstance(outcome, Completed):
                others[one.execution_id] = one
                continue
            made.runs.append(claim.execution)
            made.tokens[one.execution_id] = one.token
            made.started_at.append(one.started_at or claim.execution.started_at)
            made.ended_at.append(one.ended_at or now)
            made.results.append(result_value(outcome.result))
        return made, others


@dataclass(slots=True, kw_only=True)
class _Settling:
    """One batch on its way: what was decided, and the rows that follow from it."""

    conn: Connection
    now: datetime
    locks: Mapping[str, Lock]  # of the jobs
    jobs: dict[str, Job]
    edges: chains.Edges  # to those that depend on the jobs or follow them
    held: set[str]  # domains whose circuit breaker is not closed
    passed_by: Collection[str] = frozenset()  # jobs that somebody else holds, or one that follows them
    told: _Successes = field(default_factory=lambda: _Successes([], {}, [], [], []))
    changed: Asked = NOTHING  # those of them that were not stale, once it is known
    dead: set[str] = field(default_factory=set)  # tokens of leases that are over
    succeeded: list[Execution] = field(default_factory=list)  # as they were claimed
    done: list[Settlement] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    tried: list[dict[str, Any]] = field(default_factory=list)
    given_back: list[dict[str, Any]] = field(default_factory=list)  # numbers of attempts that never began

    def lacks(self, ending: Ending) -> bool:
        """Must it be told again, because its job is not ours?"""
        return bool(self.passed_by) and (ending.claim is None or ending.claim.job.id in self.passed_by)

    def succeed(self, endings: Iterable[Ending]) -> dict[ExecutionId, Ending]:
        """Of successes only the tokens are looked at, in the database alone; the others are still to be
        judged. Their rows tell of the attempt as well: the history makes it of them."""
        found, others = _Successes.among(endings, self.now)
        if found.runs:
            each: Columns = {
                "started_at": found.started_at,
                "completed_at": found.ended_at,
                "result": found.results,
            }
            dialect = dialects.of(self.conn)
            self.changed = dialect.change_held(self.conn, executions, found.tokens, each, _SUCCEEDED)
            dialect.dispatch(self.conn)
            self.told = found
        return others

    def hear(self) -> None:
        """Which of the successes were not stale."""
        held = {row[0] for row in self.changed.rows()}
        self.dead |= {self.told.tokens[execution_id] for execution_id in held}
        self.succeeded = [one for one in self.told.runs if one.id in held]

    def judge(self, told: Mapping[ExecutionId, Ending], chance: float) -> None:
        for place, execution in enumerate(_running(self.conn, told) if told else ()):
            self.dead.add(told[execution.id].token)
            self.decide(execution, told[execution.id], (chance + place * GOLDEN) % 1.0)

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
        if settlement.execution.state is ExecutionState.COMPLETED:
            pass  # its own row tells of this attempt
        elif attempt is not None:
            same = attempt.result is settlement.execution.result
            result = values["result"] if same else result_value(attempt.result)
            self.tried.append(attempt_values(attempt) | {"result": result})
        elif settlement.execution.wait_reason is WaitReason.BREAKER:
            self.given_back.append({"id": values["id"], "attempt": settlement.execution.attempt})
        self.done.append(settlement)
        self.values.append(values)

    def write(self) -> None:
        if not self.done and not self.succeeded:
            return
        dialect = dialects.of(self.conn)
        dialect.update(self.conn, executions, self.values)
        dialect.update(self.conn, executions, self.given_back)
        dialect.insert(self.conn, attempts, self.tried, ("execution_id", "number"))
        ended = self._ended()
        if self.edges:
            chains.follow(self.conn, self.edges, [one for one in ended if one.final], self.jobs, self.now)
        after = SettledJobs(conn=self.conn, now=self.now, locks=self.locks, jobs=self.jobs)
        after.write(ended, self.dead)
        failed = [s.execution for s in self.done if s.execution.state is ExecutionState.FAILED]
        outbox.add_failures(self.conn, [(self.jobs[one.job_id], one) for one in failed], self.now)
        if any(not s.final and s.execution.available_at is not None for s in self.done):
            tell(self.conn, WORK)

    def _ended(self) -> list[Ended]:
        """In the order of their ids, which is that of their planning."""
        made = [Ended(one, ExecutionState.COMPLETED, True) for one in self.succeeded]
        made += [Ended(one.execution, one.execution.state, one.final) for one in self.done]
        return sorted(made, key=attrgetter("execution.id"))


_SUCCEEDED: Final[Mapping[str, Any]] = {
    "state": ExecutionState.COMPLETED.value,
    "wait_reason": None,
    "detail": None,
    "lease_token": None,
    "lease_expires_at": None,
    "deadline_at": None,
    "remote": False,
    "cancel_url": None,
    "error": None,
    "stack": None,
}
