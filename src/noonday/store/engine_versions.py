"""Two engines side by side: how each fares, which jobs it has, moving them, and the end of version 1."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    Float,
    Subquery,
    Text,
    and_,
    case,
    func,
    literal,
    select,
    update,
)
from sqlalchemy import cast as cast_to

from noonday.domain.execution import Cause, Road
from noonday.domain.job import Job, JobId, JobState
from noonday.ids import first_id
from noonday.store import dialects, meta
from noonday.store.migrations.plain_sql_0002 import FINISHED
from noonday.store.notices import JOBS, WORK, tell
from noonday.store.tables import ARMED, OPEN, attempts, executions, jobs

NEWEST: Final = 100_000  # executions that a comparison looks at, at most
Named = dict[JobId, str]
Found = dict[Road, dict[str, Any]]  # some of the Figures of each
_ENDS: Final = ("completed", "failed", "cancelled")
_NAME: Final = func.coalesce(jobs.c.name, cast_to(jobs.c.id, Text))  # plain SQL may leave a job without one
_SHARES: Final = (0.5, 0.95, 0.99, 1.0)  # of Lateness


@dataclass(frozen=True, slots=True)
class Lateness:
    """From due to the start of the first attempt, of scheduled runs."""

    p50: timedelta
    p95: timedelta
    p99: timedelta
    max: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One engine: its jobs, what is open on its road now, and how its newest executions went."""

    jobs: int = 0
    armed: int = 0
    running: int = 0
    waiting: int = 0
    completed: int = 0
    failed: int = 0
    skipped: int = 0
    cancelled: int = 0
    took: timedelta | None = None  # a completed or failed run on average: its newest attempt
    lateness: Lateness | None = None

    @property
    def ended(self) -> int:
        return self.completed + self.failed

    @property
    def failure_rate(self) -> float | None:
        return self.failed / self.ended if self.ended else None


def compare(conn: Connection, since: datetime) -> dict[Road, Figures]:
    """Of executions planned since then, at most the NEWEST."""
    recent = _recent(since)
    found: dict[Road, Figures] = {road: Figures() for road in Road}
    for part in (_jobs(conn), _going(conn), _ended(conn, recent), _late(conn, recent)):
        found |= {road: replace(found[road], **values) for road, values in part.items()}
    return found


def _recent(since: datetime) -> Subquery:
    # Ids sort by the time of their making: this is one end of an index.
    columns = ("id", "road", "state", "cause", "scheduled_for", "started_at", "completed_at", "skipped_count")
    query = select(*(executions.c[name] for name in columns)).where(executions.c.id >= first_id(since))
    return query.order_by(executions.c.id.desc()).limit(NEWEST).subquery()


def _ended(conn: Connection, recent: Subquery) -> Found:
    state = recent.c.state
    # One row may stand for many skipped instants.
    skips = case((recent.c.skipped_count > 0, recent.c.skipped_count), else_=1)
    counts = [func.sum(case((state == name, 1), else_=0)).label(name) for name in _ENDS]
    skipped = func.sum(case((state == "skipped", skips), else_=0)).label("skipped")
    seconds = dialects.of(conn).seconds_between(recent.c.started_at, recent.c.completed_at)
    took = func.avg(case((state.in_(["completed", "failed"]), seconds))).label("took")
    query = select(recent.c.road, *counts, skipped, took).group_by(recent.c.road)
    found: Found = {}
    for row in conn.execute(query).mappings():
        values: dict[str, Any] = {name: int(row[name]) for name in (*_ENDS, "skipped")}
        values["took"] = None if row["took"] is None else timedelta(seconds=float(row["took"]))
        found[Road(row["road"])] = values
    return found


def _late(conn: Connection, recent: Subquery) -> Found:
    first = func.coalesce(attempts.c.started_at, recent.c.started_at)
    seconds = dialects.of(conn).seconds_between(recent.c.scheduled_for, first)
    both = and_(attempts.c.execution_id == recent.c.id, attempts.c.number == 1)
    runs = (
        select(recent.c.road, seconds.label("late"))
        .select_from(recent.outerjoin(attempts, both))
        .where(first.is_not(None), recent.c.cause == Cause.SCHEDULE.value)
        .subquery()
    )
    place = func.row_number().over(partition_by=runs.c.road, order_by=runs.c.late).label("place")
    total = func.count().over(partition_by=runs.c.road).label("total")
    ranked = select(runs.c.road, runs.c.late, place, total).subquery()
    shares = [
        func.min(case((ranked.c.place >= cast_to(ranked.c.total, Float) * literal(share), ranked.c.late)))
        for share in _SHARES
    ]
    rows = conn.execute(select(ranked.c.road, *shares).group_by(ranked.c.road))
    return {
        Road(road): {"lateness": Lateness(*(timedelta(seconds=max(one, 0.0)) for one in late))}
        for road, *late in rows
    }


def _jobs(conn: Connection) -> Found:
    """A version that is neither 1 nor 2 takes the database road, as version 1."""
    road = case((jobs.c.scheduler_version == 2, 2), else_=1).label("road")
    armed = case((and_(ARMED, jobs.c.status != JobState.CANCELLED.value), 1), else_=0)
    rows = conn.execute(select(road, func.count(), func.sum(armed)).group_by(road))
    return {Road(of): {"jobs": int(count), "armed": int(ready)} for of, count, ready in rows}


def _going(conn: Connection) -> Found:
    running = func.sum(case((executions.c.state == "running", 1), else_=0))
    query = select(executions.c.road, running, func.count()).where(OPEN).group_by(executions.c.road)
    rows = conn.execute(query).all()
    return {Road(of): {"running": int(busy), "waiting": int(count - busy)} for of, busy, count in rows}


def elsewhere(conn: Connection, to: Road, tag: str | None = None, after: str = "", limit: int = 500) -> Named:
    """Jobs that the other engine has, with their names; by id, those after one of them."""
    query = select(jobs.c.id, _NAME).where(jobs.c.scheduler_version != to.value).order_by(jobs.c.id)
    if tag is not None:
        query = query.where(dialects.of(conn).has_item(jobs.c.tags, tag))
    if after:
        query = query.where(jobs.c.id > after)
    return {JobId(job_id): str(name) for job_id, name in conn.execute(query.limit(limit))}


def count_elsewhere(conn: Connection, to: Road) -> int:
    query = select(func.count()).select_from(jobs).where(jobs.c.scheduler_version != to.value)
    return int(conn.execute(query).scalar_one())


class Moved(NamedTuple):
    had: int  # the version it had
    revision: int  # that the move made


def move(conn: Connection, ids: Collection[JobId], to: Road, now: datetime) -> dict[JobId, Moved]:
    """Those that were on the other engine. A trigger takes what waits along."""
    dialect = dialects.of(conn)
    version = jobs.c.scheduler_version
    query = select(jobs.c.id, version, jobs.c.revision)
    query = query.where(dialect.among(jobs.c.id, ids), version != to.value)
    rows = conn.execute(dialect.locked(query.order_by(jobs.c.id), jobs))
    found = {JobId(job_id): Moved(had, revision + 1) for job_id, had, revision in rows}
    values = {"scheduler_version": to.value, "revision": jobs.c.revision + 1, "updated_at": now}
    conn.execute(update(jobs).where(dialect.among(jobs.c.id, found)).values(values))
    tell(conn, JOBS)
    tell(conn, WORK)
    return found


def finished_at(conn: Connection) -> datetime | None:
    """Since when there is version 2 alone."""
    found = meta.get(conn, FINISHED)
    return None if found is None else datetime.fromisoformat(found)


def finish(conn: Connection, now: datetime) -> None:
    """From now on whatever comes as version 1 becomes version 2."""
    meta.put(conn, FINISHED, now.isoformat())
    dialects.of(conn).default(conn, jobs.c.scheduler_version, Road.STREAMS.value)


def reopen(conn: Connection) -> None:
    meta.drop(conn, FINISHED)
    dialects.of(conn).default(conn, jobs.c.scheduler_version, Road.DATABASE.value)


def of_its_time(conn: Connection, job: Job) -> Job:
    """The job as it may be saved: once the migration is finished, of version 2."""
    return of_their_time(conn, [job])[0]


def of_their_time(conn: Connection, made: Sequence[Job]) -> list[Job]:
    new = Road.STREAMS.value
    if all(job.scheduler_version == new for job in made) or finished_at(conn) is None:
        return list(made)
    return [replace(job, scheduler_version=new) for job in made]
