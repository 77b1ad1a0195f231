"""Retention: old history goes, in small batches, by a walk over the jobs that remembers where it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, Select, case, delete, func, select, update

from noonday.store import dialects, meta, outputs, tallying
from noonday.store.tables import attempts, executions, jobs
from noonday.store.tables import meta as meta_table
from noonday.store.walking import window

WINDOW: Final = 10_000  # jobs looked at in one step of the walk
STEPS: Final = 20  # steps in one call
_CURSOR: Final = "prune_cursor"
_REMOVED: Final = "removed:"
_FINAL: Final = ("completed", "failed", "cancelled", "skipped")


@dataclass(frozen=True, slots=True)
class _Rule:
    """A finished row is kept if it is among the newest `runs` or ended after `since`; None = not a reason."""

    runs: int | None
    since: datetime | None


def prune(conn: Connection, now: datetime, runs: int = 100, days: int = 30, limit: int = 500) -> int:
    """Delete at most `limit` finished executions that no rule keeps; returns how many.

    A job that names its own numbers is held to those alone. Call again at once if the limit was reached.
    """
    gone = prune_removed(conn, limit)
    for _ in range(STEPS):
        if gone >= limit:
            break
        found, last = overfull(conn, meta.get(conn, _CURSOR), runs)
        gone += prune_jobs(conn, found, now, runs, days, limit - gone)
        if gone >= limit:
            break  # the walk goes on with this window
        if last is None:
            conn.execute(delete(meta_table).where(meta_table.c.key == _CURSOR))
            break
        meta.put(conn, _CURSOR, last)
    return gone


def overfull(conn: Connection, after: str | None, runs: int) -> tuple[list[str], str | None]:
    """Of the next window of jobs those that may have more rows than are kept, and where the window ends."""
    held, last = window(conn, after, WINDOW)
    found = conn.execute(_overfull(runs).where(*held).order_by(jobs.c.id))
    return [row.id for row in found], last


def prune_jobs(conn: Connection, ids: Sequence[str], now: datetime, runs: int, days: int, limit: int) -> int:
    """As `prune`, of these jobs alone."""
    if not ids:
        return 0
    usual, gone = _Rule(runs, now - timedelta(days=days)), 0
    chosen = dialects.of(conn).among(jobs.c.id, ids)
    for row in conn.execute(_overfull(runs).where(chosen).order_by(jobs.c.id)).all():
        gone += _prune_job(conn, row, now, usual, limit - gone)
        if gone >= limit:
            break
    return gone


def _overfull(runs: int) -> Select[Any]:
    own_days = case((jobs.c.retention_days.is_not(None), 0), else_=runs)
    kept = func.coalesce(jobs.c.retention_runs, own_days)
    return select(jobs.c.id, jobs.c.retention_runs, jobs.c.retention_days).where(jobs.c.row_count > kept)


def _prune_job(conn: Connection, row: Row[Any], now: datetime, usual: _Rule, limit: int) -> int:
    rule = usual
    if row.retention_runs is not None or row.retention_days is not None:
        days = row.retention_days
        rule = _Rule(row.retention_runs, None if days is None else now - timedelta(days=days))
    mine = (executions.c.job_id == row.id, executions.c.state.in_(_FINAL))
    unkept = list(mine)
    if rule.since is not None:
        unkept.append(executions.c.completed_at < rule.since)
    if rule.runs:
        newest_kept = (
            select(executions.c.scheduled_for)
            .where(*mine)
            .order_by(executions.c.scheduled_for.desc())
            .offset(rule.runs - 1)
            .limit(1)
        )
        unkept.append(executions.c.scheduled_for < newest_kept.scalar_subquery())
    return _delete(conn, row.id, unkept, limit)


def prune_removed(conn: Connection, limit: int) -> int:
    """The history of jobs that are gone."""
    gone = 0
    query = select(meta_table.c.key).where(meta_table.c.key.like(f"{_REMOVED}%")).order_by(meta_table.c.key)
    for key in conn.execute(query.limit(100)).scalars().all():
        job_id = key.removeprefix(_REMOVED)
        there = conn.execute(select(jobs.c.id).where(jobs.c.id == job_id)).first()
        if there is None:
            gone += _delete(conn, job_id, [executions.c.job_id == job_id], limit - gone)
        if gone >= limit:
            break
        conn.execute(delete(meta_table).where(meta_table.c.key == key))
    return gone


def _delete(conn: Connection, job_id: str, unkept: list[ColumnElement[bool]], limit: int) -> int:
    dialect = dialects.of(conn)
    oldest = select(executions.c.id).where(*unkept).order_by(executions.c.scheduled_for).limit(limit)
    ids = conn.execute(oldest).scalars().all()
    if ids:
        tallying.take_back(conn, ids)
        conn.execute(delete(attempts).where(dialect.among(attempts.c.execution_id, ids)))
        outputs.forget(conn, ids)
        conn.execute(delete(executions).where(dialect.among(executions.c.id, ids)))
        conn.execute(update(jobs).where(jobs.c.id == job_id).values(row_count=jobs.c.row_count - len(ids)))
    return len(ids)
