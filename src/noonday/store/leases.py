"""Leases: renewed while their holder lives, found when they died, extended by what a remote run reports."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    Connection,
    Integer,
    Select,
    Update,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    update,
)

from noonday.domain.errors import Conflict, NotFound
from noonday.domain.execution import ExecutionId
from noonday.domain.outcome import Lost, Outcome, TimedOut
from noonday.store import dialects
from noonday.store.columns import Instant
from noonday.store.dialects import Answers
from noonday.store.jsontext import clean_text
from noonday.store.prepared import prepared
from noonday.store.reading import may_be_id
from noonday.store.settling import Ending
from noonday.store.tables import HAS_STATE, RUNNING, executions


def renew(conn: Connection, held: Mapping[ExecutionId, str], expires_at: datetime) -> dict[ExecutionId, bool]:
    """Whether each lease that is still ours was asked to stop; one that is missing in the answer is lost."""
    if not held:
        return {}
    mine = {
        ExecutionId(execution_id): cancel is not None
        for execution_id, token, cancel in _held(conn, ids=held.keys())
        if token == held[ExecutionId(execution_id)]
    }
    if mine:
        _renew(conn, ids=mine.keys(), until=expires_at)
    return mine


@prepared
def _held(dialect: Answers) -> Select[Any]:
    """Locked in the order in which settling locks them, so that the two never wait in a circle."""
    columns = (executions.c.id, executions.c.lease_token, executions.c.cancel_requested_at)
    query = select(*columns).where(HAS_STATE == "running", dialect.listed(executions.c.id, "ids"))
    return dialect.locked(query.order_by(executions.c.id), executions)


@prepared
def _renew(dialect: Answers) -> Update:
    """A remote run lives by its own heartbeats: a renewal that was under way must not shorten them."""
    query = update(executions).where(dialect.listed(executions.c.id, "ids"), ~executions.c.remote)
    return query.values(lease_expires_at=bindparam("until", type_=Instant))


def expired(conn: Connection, now: datetime, limit: int = 500) -> list[Ending]:
    """Runs whose lease died, and remote ones that took too long; to be settled."""
    found = _expired(conn, now=now, count=limit)
    return [
        Ending(
            execution_id=ExecutionId(row.id),
            token=row.lease_token or "",
            outcome=_end(row.remote, row.deadline_at, row.started_at, row.instance_id, now),
        )
        for row in found
    ]


@prepared
def _expired(_: Answers) -> Select[Any]:
    now = bindparam("now", type_=Instant)
    silent = executions.c.lease_expires_at < now
    overdue = and_(executions.c.remote, executions.c.deadline_at < now)
    columns = (
        executions.c.id,
        executions.c.lease_token,
        executions.c.remote,
        executions.c.lease_expires_at,
        executions.c.deadline_at,
        executions.c.started_at,
        executions.c.instance_id,
    )
    return select(*columns).where(RUNNING, or_(silent, overdue)).limit(bindparam("count", type_=Integer))


def _end(
    remote: bool,
    deadline_at: datetime | None,
    started_at: datetime | None,
    instance: str | None,
    now: datetime,
) -> Outcome:
    if remote and deadline_at is not None and deadline_at < now:
        return TimedOut(after=deadline_at - (started_at or deadline_at))
    if remote:
        return Lost(detail="no heartbeat came from the target in time")
    return Lost(detail=f"the lease of instance {instance} ran out")


def next_lease_end(conn: Connection) -> datetime | None:
    """When the next running execution would be found by `expired` if nobody renews it."""
    found: datetime | None = conn.execute(_NEXT_END).scalar()
    return found


_SOONER = and_(executions.c.remote, executions.c.deadline_at < executions.c.lease_expires_at)
_NEXT_END: Final = select(
    func.min(case((_SOONER, executions.c.deadline_at), else_=executions.c.lease_expires_at))
).where(RUNNING)


def report(
    conn: Connection,
    execution_id: str,
    attempt: int,
    progress: float | None,
    message: str | None,
    now: datetime,
    extend: timedelta | None = None,
) -> bool:
    """Keep what the running attempt tells of itself; returns whether it was asked to stop."""
    dialect = dialects.of(conn)
    query = select(executions.c.state, executions.c.attempt, executions.c.cancel_requested_at).where(
        executions.c.id == execution_id
    )
    row = conn.execute(dialect.locked(query, executions)).first() if may_be_id(conn, execution_id) else None
    if row is None:
        raise NotFound(f"there is no execution {execution_id!r}")
    if row.state != "running" or row.attempt != attempt:
        raise Conflict(f"attempt {attempt} of execution {execution_id} is not running")
    values: dict[str, object] = {}
    if progress is not None:
        values["progress"] = min(max(progress, 0.0), 1.0)
    if message is not None:
        values["progress_message"] = clean_text(message)
    if extend is not None:
        values["lease_expires_at"] = now + extend
    if values:
        conn.execute(update(executions).where(executions.c.id == execution_id).values(values))
    return row.cancel_requested_at is not None
