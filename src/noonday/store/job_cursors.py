"""Jobs as the planner and the watcher see them: what is due, what was changed by plain SQL, stale locks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

import structlog
from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Select,
    Update,
    bindparam,
    exists,
    literal_column,
    or_,
    select,
    update,
)

from noonday.domain.job import Job, JobId, JobState
from noonday.domain.occurrences import check
from noonday.store import dialects, meta
from noonday.store.columns import Instant
from noonday.store.definitions import KEPT, jobs_from
from noonday.store.dialects import Answers
from noonday.store.jsontext import clean_text
from noonday.store.notices import JOBS, tell
from noonday.store.prepared import prepared, quick
from noonday.store.rows import job_from_row
from noonday.store.tables import ARMED, CLEAN, DIRTY, RUNNING, executions, jobs
from noonday.store.walking import window

log = structlog.get_logger(__name__)

WINDOW: Final = 5_000  # jobs that one search for stale locks looks at
_LOCKS_CURSOR: Final = "locks_cursor"


@dataclass(frozen=True, slots=True)
class BadRow:
    """A job that somebody made unreadable with plain SQL; not planned until it is mended."""

    id: JobId
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advance:
    """The cursor after planning; without a state the job keeps the one it has."""

    job_id: JobId
    next_run_at: datetime | None
    fire_count: int
    state: JobState | None = None


class Due(NamedTuple):
    job: Job
    runs: int  # planned so far: the newest one's number


def due(conn: Connection, before: datetime, limit: int = 500) -> list[Due]:
    """Armed jobs whose cursor is not after this instant, locked, without those that another planner holds.

    A job changed by plain SQL is left to the watcher first: its cursor belongs to the old schedule.
    """
    # Soon after many were added nobody has counted them yet: PostgreSQL would read and sort all of them.
    dialects.of(conn).along_indexes(conn)
    rows = _due(conn, before=before, count=limit)
    made = []
    for row, job in zip(rows, jobs_from(conn, rows), strict=True):
        if isinstance(job, Job):
            made.append(Due(job, row[-1]))
        else:
            _put_aside(conn, row[0], str(job))
    return made


@quick
def _due(dialect: Answers) -> Select[Any]:
    near = jobs.c.next_run_at <= bindparam("before", type_=Instant)
    query = select(*KEPT, jobs.c.execution_count)
    query = query.where(ARMED, near, CLEAN, jobs.c.status != JobState.CANCELLED.value)
    query = query.order_by(jobs.c.next_run_at).limit(bindparam("count", type_=Integer))
    return dialect.skip_locked(query, jobs)


def next_due_at(conn: Connection) -> datetime | None:
    """When the next job is due."""
    rows = _next_due_at(conn)
    return rows[0][0] if rows else None


@quick
def _next_due_at(_: Answers) -> Select[Any]:
    query = select(jobs.c.next_run_at).where(ARMED, CLEAN).order_by(jobs.c.next_run_at)
    return query.limit(literal_column("1"))


def many_due(conn: Connection, until: datetime, many: int) -> bool:
    """Are so many jobs due by then?"""
    return bool(_many_due(conn, until=until, others=many - 1)[0][0])


@quick
def _many_due(_: Answers) -> Select[Any]:
    near = jobs.c.next_run_at <= bindparam("until", type_=Instant)
    query = select(jobs.c.id).where(ARMED, CLEAN, near).order_by(jobs.c.next_run_at)
    last = query.limit(literal_column("1")).offset(bindparam("others", type_=Integer))
    return select(exists(last))


def changed(conn: Connection, limit: int = 500) -> list[Job | BadRow]:
    """Jobs changed behind our back, locked. Saving one clears its mark; a bad one is put aside here."""
    made: list[Job | BadRow] = []
    for row in _changed(conn, count=limit).mappings().all():
        try:
            job = job_from_row(row)
            check(job.timing)
            made.append(job)
        except Exception as exc:  # whatever is wrong with one row, the others go on
            made.append(_put_aside(conn, row["id"], str(exc)))
    return made


@prepared
def _changed(dialect: Answers) -> Select[Any]:
    query = select(jobs).where(DIRTY).limit(bindparam("count", type_=Integer))
    return dialect.skip_locked(query, jobs)


def _put_aside(conn: Connection, job_id: str, error: str) -> BadRow:
    log.error("a job's row cannot be read", job_id=job_id, error=error, action="read job")
    # Its cursor stays: once the row is mended, what it missed can be recorded.
    values = {"dirty": False, "error": clean_text(error)[:1000]}
    conn.execute(update(jobs).where(jobs.c.id == job_id).values(values))
    return BadRow(JobId(job_id), error)


def advance(conn: Connection, changes: Sequence[Advance]) -> None:
    """Move the cursors of jobs that `due` has locked."""
    moved, kept = [], []
    for change in changes:
        row = {"id": change.job_id, "next_run_at": change.next_run_at, "fire_count": change.fire_count}
        if change.state is None:
            kept.append(row)
        else:
            moved.append(row | {"status": change.state.value})
    dialects.of(conn).update(conn, jobs, moved)
    dialects.of(conn).update(conn, jobs, kept)


def skip_through(conn: Connection, job: Job) -> None:
    """The cursor of a locked job behind what people have skipped; its definition stays as it is."""
    values = {
        "next_run_at": job.next_run_at,
        "skipped_through": job.skipped_through,
        "fire_count": job.fire_count,
        "status": job.state.value,
    }
    conn.execute(update(jobs).where(jobs.c.id == job.id).values(values))
    tell(conn, JOBS)


def clear_stale_locks(conn: Connection, now: datetime, older_than: timedelta) -> int:
    """Forget locks that no running execution holds any more; returns how many, and counts them for good.

    SQLite finds them by an index. On PostgreSQL that would cost each claim its in-page update: there one call
    looks at one window of the jobs, and the next one goes on behind it.
    """
    held = _next_window(conn) if conn.dialect.name == "postgresql" else []
    cleared = conn.execute(_clear_locks(now - older_than).where(*held)).rowcount
    meta.add(conn, meta.STALE_LOCKS, cleared)
    return cleared


def _next_window(conn: Connection) -> list[ColumnElement[bool]]:
    after = meta.get(conn, _LOCKS_CURSOR)
    held, last = window(conn, after, WINDOW)
    if last is not None:
        meta.put(conn, _LOCKS_CURSOR, last)
    elif after is not None:
        meta.drop(conn, _LOCKS_CURSOR)
    return held


def _clear_locks(before: datetime) -> Update:
    held = exists(
        select(executions.c.id).where(
            RUNNING, executions.c.job_id == jobs.c.id, executions.c.lease_token == jobs.c.lock_token
        )
    )
    taken_at = jobs.c.lock_acquired_at
    old = or_(taken_at.is_(None), taken_at < before)
    return (
        update(jobs)
        .where(jobs.c.lock_token.is_not(None), old, ~held)
        .values(lock_token=None, lock_acquired_at=None)
    )
