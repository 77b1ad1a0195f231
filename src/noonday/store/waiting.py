"""Those who wait for an event: set going when it came, and by a sweep if it was ever missed."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Connection, select, update

from noonday.domain.dependency import Waiting, readiness
from noonday.domain.execution import WaitReason
from noonday.store import dialects, facts
from noonday.store.definitions import KEPT, readable_jobs
from noonday.store.execution_rows import COLUMNS, FIELDS, read_execution
from noonday.store.notices import WORK, tell
from noonday.store.releasing import children_of, give_turns, release_dependants, revive
from noonday.store.tables import PENDING, executions, jobs

SWEEP = 1000  # waiters looked at in one sweep


def unpark(conn: Connection, tasks: Collection[str]) -> int:
    """Executions that waited for somebody who knows one of these Python tasks are claimable again."""
    if not tasks:
        return 0
    dialect = dialects.of(conn)
    known = select(jobs.c.id).where(
        jobs.c.id == executions.c.job_id, dialect.among(dialect.text_of(jobs.c.target, "task"), list(tasks))
    )
    query = (
        update(executions)
        .where(PENDING, executions.c.wait_reason == WaitReason.UNKNOWN_TASK.value)
        .where(executions.c.available_at.is_(None), known.exists())
        .values(available_at=executions.c.scheduled_for)  # in the past: it was claimed before
    )
    return _woken(conn, conn.execute(query).rowcount)


def rearm_dependants(conn: Connection, parent_id: str, now: datetime) -> int:
    """The children of a parent that succeeded are judged again, also one skipped in that period."""
    slot = conn.execute(select(jobs.c.last_success_for).where(jobs.c.id == parent_id)).scalar()
    revived = 0 if slot is None else revive(conn, children_of(conn, [parent_id]), slot, now)
    return revived + release_dependants(conn, [parent_id], now)


def rearm_waiting(conn: Connection, now: datetime) -> int:
    """The safety net: waiters whose turn or dependency has come without their noticing."""
    return _missed_turns(conn, now) + _missed_parents(conn, now)


def _missed_turns(conn: Connection, now: datetime) -> int:
    waiting = (
        select(executions.c.job_id)
        .where(PENDING, executions.c.available_at.is_(None))
        .where(executions.c.wait_reason == WaitReason.OVERLAP.value)
        .distinct()
        .limit(SWEEP)
    )
    dialect = dialects.of(conn)
    query = select(*KEPT).where(jobs.c.id.in_(waiting))
    rows = conn.execute(dialect.skip_locked(query, jobs)).all()
    found = readable_jobs(conn, rows)
    if not found:
        return 0
    work = {
        i: open_
        for i, open_ in facts.open_work(conn, found).items()
        if open_.running < found[i].overlapping.max_instances
    }
    give_turns(conn, found, work, now)
    return len(work)


def _missed_parents(conn: Connection, now: datetime) -> int:
    dialect = dialects.of(conn)
    query = (
        select(*COLUMNS, *KEPT)
        .join_from(executions, jobs, jobs.c.id == executions.c.job_id)
        .where(PENDING, executions.c.available_at.is_(None))
        .where(executions.c.wait_reason == WaitReason.DEPENDENCY.value)
        .order_by(executions.c.id)
        .limit(SWEEP)
    )
    rows = conn.execute(dialect.skip_locked(query, executions, jobs)).all()
    width = len(FIELDS)
    found = readable_jobs(conn, [row[width:] for row in rows])
    above = {p for job in found.values() for p in job.depends_on}
    parents = facts.parents(conn, above, now)
    ready = []
    for row in rows:
        execution = read_execution(row)
        job = found.get(execution.job_id)
        if job is None or not parents.by_id.keys() >= set(job.depends_on):
            continue
        seen = [parents.by_id[p].seen_from(p, execution) for p in job.depends_on]
        verdict = readiness(seen, covers_from=execution.covers_from, last_run_at=job.last_run_at)
        if not isinstance(verdict, Waiting):
            ready.append(execution.id)
    if not ready:
        return 0
    query_ = update(executions).where(dialect.among(executions.c.id, ready)).values(available_at=now)
    return _woken(conn, conn.execute(query_).rowcount)


def _woken(conn: Connection, count: int) -> int:
    if count:
        tell(conn, WORK)
    return count
