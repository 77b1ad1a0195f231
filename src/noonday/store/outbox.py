"""The outbox: what must be told to the outside, written with the change itself so that none is lost."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job
from noonday.ids import new_id
from noonday.store import dialects
from noonday.store.tables import outbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    id: str
    kind: str  # such as execution.failed
    payload: Mapping[str, Any]
    created_at: datetime
    attempts: int


def add(conn: Connection, kind: str, payload: Mapping[str, Any], now: datetime) -> str:
    letter_id = new_id(now)
    values = {"id": letter_id, "kind": kind, "payload": dict(payload), "created_at": now, "available_at": now}
    conn.execute(insert(outbox).values(values))
    return letter_id


def add_failures(conn: Connection, ended: Sequence[tuple[Job, Execution]], now: datetime) -> None:
    rows = [
        {
            "id": new_id(now),
            "kind": "execution.failed",
            "payload": {
                "job_id": job.id,
                "job_name": job.name,
                "execution_id": execution.id,
                "scheduled_for": execution.scheduled_for.isoformat(),
                "error": execution.error,
            },
            "created_at": now,
            "available_at": now,
        }
        for job, execution in ended
        if execution.state is ExecutionState.FAILED
    ]
    dialects.of(conn).insert(conn, outbox, rows)


def take(conn: Connection, now: datetime, limit: int, lease: timedelta) -> list[Letter]:
    """Letters to deliver; whoever takes one has it for the lease, then another may."""
    dialect = dialects.of(conn)
    query = (
        select(outbox)
        .where(outbox.c.available_at <= now)
        .order_by(outbox.c.available_at, outbox.c.id)
        .limit(limit)
    )
    rows = conn.execute(dialect.skip_locked(query, outbox)).mappings().all()
    ids = [row["id"] for row in rows]
    if ids:
        taken = update(outbox).where(dialect.among(outbox.c.id, ids))
        conn.execute(taken.values(available_at=now + lease, attempts=outbox.c.attempts + 1))
    return [
        Letter(
            id=row["id"],
            kind=row["kind"],
            payload=row["payload"],
            created_at=row["created_at"],
            attempts=row["attempts"] + 1,
        )
        for row in rows
    ]


def done(conn: Connection, ids: Collection[str], now: datetime, error: str | None = None) -> None:
    """Delivered, or with an error given up."""
    if ids:
        query = update(outbox).where(dialects.of(conn).among(outbox.c.id, list(ids)))
        conn.execute(query.values(available_at=None, done_at=now, error=error))


def later(conn: Connection, letter_id: str, available_at: datetime, error: str) -> None:
    """Not delivered; again then."""
    query = update(outbox).where(outbox.c.id == letter_id)
    conn.execute(query.values(available_at=available_at, error=error))


def prune(conn: Connection, before: datetime, limit: int = 500) -> int:
    old = select(outbox.c.id).where(outbox.c.done_at < before).limit(limit)
    return conn.execute(delete(outbox).where(outbox.c.id.in_(old))).rowcount
