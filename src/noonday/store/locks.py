"""Locks of users' code, one row for each name: its owner, until when, and a number that only grows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from sqlalchemy import ColumnElement, Connection, delete, select, update

from noonday.store import dialects
from noonday.store.tables import locks

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REMEMBERED = timedelta(days=1)  # how long the number of a lock that nobody takes is kept


def take(conn: Connection, name: str, owner: str, ttl: timedelta, now: datetime) -> int | None:
    """The new owner's number, or None while somebody else's time is not over."""
    dialect = dialects.of(conn)
    dialect.insert(conn, locks, [{"name": name}], ("name",))
    dialect.impatient(conn, ttl)
    query = select(locks.c.owner, locks.c.fence, locks.c.expires_at).where(locks.c.name == name)
    row = conn.execute(dialect.locked(query, locks)).one()
    now = dialect.now(conn, now)
    if row.owner is not None and row.expires_at is not None and row.expires_at > now:
        return None
    # Microseconds, so that it grows even if the row was forgotten, or the lock was in Redis before.
    fence: int = max(row.fence + 1, (now - _EPOCH) // timedelta(microseconds=1))
    values = {"owner": owner, "fence": fence, "expires_at": now + ttl}
    conn.execute(update(locks).where(locks.c.name == name).values(values))
    return fence


def extend(conn: Connection, name: str, owner: str, ttl: timedelta, now: datetime) -> bool:
    """Is it still ours? One that ran out is not, even if nobody else took it."""
    now = dialects.of(conn).now(conn, now)
    change = update(locks).where(*_ours(name, owner), locks.c.expires_at > now)
    return conn.execute(change.values(expires_at=now + ttl)).rowcount == 1


def free(conn: Connection, name: str, owner: str, now: datetime) -> bool:
    """Nobody's, if it was ours."""
    now = dialects.of(conn).now(conn, now)
    change = update(locks).where(*_ours(name, owner))
    return conn.execute(change.values(owner=None, expires_at=now)).rowcount == 1


def forget(conn: Connection, now: datetime) -> int:
    """Drop names that nobody has used for a while."""
    before = dialects.of(conn).now(conn, now) - REMEMBERED
    return conn.execute(delete(locks).where(locks.c.expires_at < before)).rowcount


def _ours(name: str, owner: str) -> tuple[ColumnElement[bool], ...]:
    return (locks.c.name == name, locks.c.owner == owner)
