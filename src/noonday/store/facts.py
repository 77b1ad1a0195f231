"""What must be known to decide: what of a job is running or waiting, and how its parents stand.

Always asked in a statement of its own after the jobs are locked. PostgreSQL takes a statement's snapshot
before it waits for a lock, so facts read by the locking statement itself could be older than the lock.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from math import inf
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Integer,
    Select,
    TextClause,
    bindparam,
    case,
    exists,
    false,
    func,
    literal_column,
    or_,
    select,
    true,
    union_all,
)

from noonday.domain.admission import most_at_once
from noonday.domain.dependency import ParentFacts
from noonday.domain.execution import Execution, ExecutionId, ExecutionState, WaitReason
from noonday.domain.job import Job, JobId
from noonday.store.columns import Instant
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared, quick
from noonday.store.tables import OPEN, PENDING, QUEUED, RUNNING, executions, jobs

_FORCED = ("manual", "admin")


class OpenWork(NamedTuple):
    """What is open of a job."""

    running: int = 0  # of a job whose runs may overlap: one or more, if there are any
    waiting: bool = False  # something is queued or pending; of a job with a next run nobody need know
    forced: bool = False  # among it a run that somebody asked for
    queueing: bool = False  # among it one that waits for its turn


NOTHING_OPEN = OpenWork()
_MINE: Final = executions.c.job_id == jobs.c.id
_TURN: Final = (executions.c.wait_reason == WaitReason.OVERLAP.value) & executions.c.available_at.is_(None)
_FEW: Final = 4  # open runs of a job, on the average, that are read one by one


def open_work(conn: Connection, of: Mapping[str, Job]) -> dict[str, OpenWork]:
    """Most jobs have little open: then it is read. Of a backlog no more is read than tells that it is one."""
    if not of:
        return {}
    most = _FEW * len(of)
    going = [job_id for job_id, job in of.items() if job.next_run_at is not None]
    last = of.keys() - going if going else of.keys()
    rows = _open_runs(conn, ids=of.keys(), going=going, last=last, most=most + 1)
    return _told_by(rows, of) if len(rows) <= most else _probed(conn, of)


@quick
def _open_runs(dialect: Answers) -> CompoundSelect[Any]:
    """One state after the other, each a walk along the index of what is open. What is planned ahead of a job
    that goes on is passed by: there may be much of it, and it tells nothing."""
    columns = executions.c.job_id, executions.c.cause
    running = select(*columns, true().label("runs"), false().label("turn")).where(RUNNING)
    queued = select(*columns, false().label("runs"), false().label("turn")).where(QUEUED)
    forced = queued.where(executions.c.cause.in_(_FORCED))
    pending = select(*columns, false().label("runs"), _TURN.label("turn")).where(PENDING)
    parts = {"ids": (running, pending), "going": (forced,), "last": (queued,)}
    mine = [dialect.one_by_one(executions.c.job_id, name, *queries) for name, queries in parts.items()]
    return union_all(*chain.from_iterable(mine)).limit(bindparam("most", type_=Integer))


def _told_by(rows: Iterable[Sequence[Any]], of: Iterable[str]) -> dict[str, OpenWork]:
    found = dict.fromkeys(of, NOTHING_OPEN)
    for job_id, cause, running, turn in rows:
        n, waiting, forced, queueing = found[job_id]
        if running:
            n += 1
        else:
            waiting, forced, queueing = True, forced or cause in _FORCED, queueing or bool(turn)
        found[job_id] = OpenWork(n, waiting, forced, queueing)
    return found


def _probed(conn: Connection, of: Mapping[str, Job]) -> dict[str, OpenWork]:
    """Where runs may overlap nobody asks how many there are."""
    free = [job_id for job_id, job in of.items() if most_at_once(job) == inf]
    limited = of.keys() - free
    rows = [
        *(_probes_of_many(conn, ids=free).all() if free else ()),
        *(_probes_and_count(conn, ids=limited).all() if limited else ()),
    ]
    return {job_id: OpenWork(int(n), bool(w), bool(f), bool(q)) for job_id, n, w, f, q in rows}


@prepared
def _probes_and_count(dialect: Answers) -> Select[Any]:
    running = select(func.count()).select_from(executions).where(RUNNING, _MINE)
    return _probes(dialect, running.scalar_subquery())


@prepared
def _probes_of_many(dialect: Answers) -> Select[Any]:
    return _probes(dialect, _any(RUNNING))


def _any(*those: ColumnElement[bool] | TextClause) -> ColumnElement[bool]:
    """Not EXISTS: of two such PostgreSQL may gather the backlog of all jobs first, to look them up in it."""
    one = select(executions.c.id).where(_MINE, *those).limit(literal_column("1"))
    return one.scalar_subquery().is_not(None)


def _probes(dialect: Answers, running: ColumnElement[Any]) -> Select[Any]:
    """Probes of the index of open executions: the cost does not grow with the backlog of a job."""
    waiting = _any(QUEUED) | _any(PENDING)  # one for both would not go along the index
    forced = or_(*(_any(state, executions.c.cause == by) for by in _FORCED for state in (QUEUED, PENDING)))
    queueing = _any(PENDING, _TURN)
    query = select(jobs.c.id, running, waiting, forced, queueing)
    return query.where(dialect.listed(jobs.c.id, "ids"))


def open_work_of(conn: Connection, job: Job) -> OpenWork:
    return open_work(conn, {job.id: job}).get(job.id, NOTHING_OPEN)


def chain_goes_on(conn: Connection, job_id: str) -> bool:
    """Is a scheduled run open, at whose end a job with a fixed delay becomes due again?"""
    link = select(executions.c.id).where(OPEN, executions.c.job_id == job_id)
    return bool(conn.execute(select(exists(link.where(executions.c.cause == "schedule")))).scalar())


@quick
def _running_counts(dialect: Answers) -> Select[Any]:
    query = select(executions.c.job_id, func.count()).where(RUNNING)
    return query.where(dialect.listed(executions.c.job_id, "ids")).group_by(executions.c.job_id)


def running_counts(conn: Connection, job_ids: Collection[str]) -> dict[str, int]:
    return {row[0]: row[1] for row in _running_counts(conn, ids=job_ids)} if job_ids else {}


@quick
def _running_ids(dialect: Answers) -> Select[Any]:
    query = select(executions.c.job_id, executions.c.id).where(RUNNING)
    mine = query.where(dialect.listed(executions.c.job_id, "ids"))
    return mine.order_by(executions.c.claimed_at, executions.c.id)


def running_ids(conn: Connection, job_ids: Collection[str]) -> dict[str, tuple[ExecutionId, ...]]:
    """Oldest first."""
    made: dict[str, tuple[ExecutionId, ...]] = defaultdict(tuple)
    for job_id, execution_id in _running_ids(conn, ids=job_ids) if job_ids else ():
        made[job_id] += (ExecutionId(execution_id),)
    return made


@quick
def _waiting_for_turn(dialect: Answers) -> Select[Any]:
    turn = executions.c.wait_reason == WaitReason.OVERLAP.value
    query = select(executions.c.job_id, func.count()).where(PENDING, turn)
    return query.where(dialect.listed(executions.c.job_id, "ids")).group_by(executions.c.job_id)


def waiting_for_turn(conn: Connection, job_ids: Collection[str]) -> dict[str, int]:
    return {row[0]: row[1] for row in _waiting_for_turn(conn, ids=job_ids)} if job_ids else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """A parent as locked: `active` = something of it is under way, `oldest_for` = its oldest open slot."""

    name: str
    last_success_for: datetime | None
    last_success_at: datetime | None
    last_status: str | None
    last_status_for: datetime | None
    active: bool = False
    oldest_for: datetime | None = None

    def seen_from(self, job_id: str, child: Execution) -> ParentFacts:
        """What is planned ahead of the child's own slot is not yet under way."""
        return ParentFacts(
            job_id=JobId(job_id),
            name=self.name,
            last_success_for=self.last_success_for,
            last_success_at=self.last_success_at,
            last_status=self.last_status,
            last_status_for=self.last_status_for,
            open=self.active or (self.oldest_for is not None and self.oldest_for <= child.scheduled_for),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parents:
    by_id: Mapping[str, Parent]
    busy: frozenset[str]  # being changed by another transaction right now: ask again later

    def settled_for(self, wanted: Iterable[JobId]) -> bool:
        return self.busy.isdisjoint(wanted)


@prepared
def _there(dialect: Answers) -> Select[Any]:
    return select(jobs.c.id).where(dialect.listed(jobs.c.id, "ids"))


@prepared
def _locked_parents(dialect: Answers) -> Select[Any]:
    columns = (
        jobs.c.id,
        jobs.c.name,
        jobs.c.last_success_for,
        jobs.c.last_success_at,
        jobs.c.last_status,
        jobs.c.last_status_for,
    )
    return dialect.shared(select(*columns).where(dialect.listed(jobs.c.id, "ids")), jobs)


@prepared
def _under_way(dialect: Answers) -> Select[Any]:
    later = executions.c.available_at > bindparam("now", type_=Instant)
    ahead = (executions.c.state == ExecutionState.QUEUED.value) & later
    oldest, active = func.min(executions.c.scheduled_for), func.max(case((ahead, 0), else_=1))
    query = select(executions.c.job_id, oldest, active).where(OPEN)
    return query.where(dialect.listed(executions.c.job_id, "ids")).group_by(executions.c.job_id)


def parents(conn: Connection, job_ids: Collection[str], now: datetime) -> Parents:
    """Locked against change, so that a parent cannot end unseen between this look and the child's wait."""
    if not job_ids:
        return Parents(by_id={}, busy=frozenset())
    there = set(_there(conn, ids=job_ids).scalars())
    rows = _locked_parents(conn, ids=job_ids).all()
    opened = _under_way(conn, ids=job_ids, now=now)
    under_way = {job_id: (oldest, bool(active)) for job_id, oldest, active in opened}
    found = {}
    for job_id, name, for_, at, status, status_for in rows:
        oldest, active = under_way.get(job_id, (None, False))
        found[job_id] = Parent(
            name=name or job_id,
            last_success_for=for_,
            last_success_at=at,
            last_status=status,
            last_status_for=status_for,
            active=active,
            oldest_for=oldest,
        )
    return Parents(by_id=found, busy=frozenset(there - found.keys()))
