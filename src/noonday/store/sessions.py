"""Browsers that are signed in: one row for each, under the digest of what its cookie holds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, RowMapping, and_, delete, insert, or_, select

from noonday.domain.access import Role
from noonday.store.front_tables import api_keys, sessions

__all__ = ["Session", "add", "get", "of_same", "prune", "remove", "remove_others"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    name: str
    role: Role
    service: str | None = None
    key_id: str | None = None  # of the API key it began with
    agent: str = ""  # what the browser calls itself
    created_at: datetime
    expires_at: datetime


_FIELDS = tuple(field.name for field in fields(Session))
_COLUMNS = tuple(sessions.c[name] for name in _FIELDS)
_KNOWN = sessions.c.role.in_([role.value for role in Role])


def add(conn: Connection, session: Session) -> None:
    values = {name: getattr(session, name) for name in _FIELDS}
    conn.execute(insert(sessions).values(values | {"role": session.role.value}))


def get(conn: Connection, session_id: str, now: datetime) -> Session | None:
    """One that still holds: it has not run out, and neither was its key revoked nor has it."""
    lives = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)
    key = select(api_keys.c.id).where(
        api_keys.c.id == sessions.c.key_id, api_keys.c.revoked_at.is_(None), lives
    )
    query = select(*_COLUMNS).where(
        sessions.c.id == session_id,
        sessions.c.expires_at > now,
        or_(sessions.c.key_id.is_(None), key.exists()),
        _KNOWN,
    )
    row = conn.execute(query).mappings().first()
    return None if row is None else _session(row)


def of_same(conn: Connection, session: Session, now: datetime, limit: int) -> list[Session]:
    """Those that have not run out of whoever has this one, it included; the newest first."""
    query = (
        select(*_COLUMNS)
        .where(_same(session), sessions.c.expires_at > now, _KNOWN)
        .order_by(sessions.c.created_at.desc(), sessions.c.id)
        .limit(limit)
    )
    return [_session(row) for row in conn.execute(query).mappings()]


def remove_others(conn: Connection, session: Session) -> int:
    """All but this one of whoever has it; returns how many."""
    return conn.execute(delete(sessions).where(_same(session), sessions.c.id != session.id)).rowcount


def remove(conn: Connection, session_id: str) -> None:
    conn.execute(delete(sessions).where(sessions.c.id == session_id))


def prune(conn: Connection, now: datetime, limit: int = 500) -> int:
    """Forget at most so many that have run out; returns how many."""
    old = (
        select(sessions.c.id).where(sessions.c.expires_at <= now).order_by(sessions.c.expires_at).limit(limit)
    )
    return conn.execute(delete(sessions).where(sessions.c.id.in_(old))).rowcount


def _same(session: Session) -> ColumnElement[bool]:
    """By the same key; of those by tokens, under the same name and role."""
    if session.key_id is not None:
        return sessions.c.key_id == session.key_id
    service = sessions.c.service
    return and_(
        sessions.c.key_id.is_(None),
        sessions.c.name == session.name,
        sessions.c.role == session.role.value,
        service.is_(None) if session.service is None else service == session.service,
    )


def _session(row: RowMapping) -> Session:
    made: dict[str, Any] = {name: row[name] for name in _FIELDS}
    return Session(**made | {"role": Role(made["role"])})
