"""API keys: their digests, what they may do, who made and revoked them, and when they were last used."""

from __future__ import annotations

from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, RowMapping, func, insert, or_, select, update

from noonday.domain.access import Role
from noonday.store import dialects
from noonday.store.front_tables import api_keys
from noonday.store.pages import Page
from noonday.store.reading import may_be_id

MOST: Final = 10_000  # keys in force: every instance holds all of them in memory


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    id: str
    name: str
    prefix: str
    role: Role
    service: str | None = None
    created_at: datetime
    created_by: str = ""
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    revoked_by: str | None = None

    def in_force(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


_FIELDS = tuple(field.name for field in fields(ApiKey))
_COLUMNS = tuple(api_keys.c[name] for name in _FIELDS)
_LIVE = api_keys.c.revoked_at.is_(None)
_KNOWN = api_keys.c.role.in_([role.value for role in Role])  # a row that somebody wrote otherwise is no key


def add(conn: Connection, key: ApiKey, digest: str) -> None:
    values = {name: getattr(key, name) for name in _FIELDS}
    conn.execute(insert(api_keys).values(values | {"role": key.role.value, "digest": digest}))


def count(conn: Connection, now: datetime) -> int:
    """How many are in force."""
    return int(conn.execute(select(func.count()).select_from(api_keys).where(*_in_force(now))).scalar_one())


def ring(conn: Connection, now: datetime) -> dict[str, tuple[ApiKey, str]]:
    """All keys in force with their digests, by prefix."""
    query = select(*_COLUMNS, api_keys.c.digest).where(*_in_force(now)).order_by(api_keys.c.id.desc())
    rows = conn.execute(query.limit(MOST)).mappings()
    return {row["prefix"]: (_read(row), row["digest"]) for row in rows}


def page(conn: Connection, limit: int = 50, offset: int = 0) -> Page[ApiKey]:
    """Newest first, the revoked ones included."""
    query = select(*_COLUMNS).where(_KNOWN).order_by(api_keys.c.id.desc())
    rows = conn.execute(query.limit(limit).offset(offset))
    total = conn.execute(select(func.count()).select_from(api_keys).where(_KNOWN)).scalar_one()
    return Page(items=tuple(map(_read, rows.mappings())), total=total, limit=limit, offset=offset)


def lock(conn: Connection, id_or_prefix: str) -> ApiKey | None:
    """Nobody else changes it until this transaction ends."""
    return _one(conn, id_or_prefix, locked=True)


def get(conn: Connection, id_or_prefix: str) -> ApiKey | None:
    return _one(conn, id_or_prefix)


def revoke(conn: Connection, key_id: str, now: datetime, by: str) -> None:
    conn.execute(update(api_keys).where(api_keys.c.id == key_id).values(revoked_at=now, revoked_by=by))


def used(conn: Connection, key_id: str, now: datetime, at_most_every: timedelta) -> None:
    """Several instances see the same key: the first of them notes it."""
    stale = or_(api_keys.c.last_used_at.is_(None), api_keys.c.last_used_at <= now - at_most_every)
    conn.execute(update(api_keys).where(api_keys.c.id == key_id, stale).values(last_used_at=now))


def _one(conn: Connection, id_or_prefix: str, *, locked: bool = False) -> ApiKey | None:
    named = api_keys.c.prefix == id_or_prefix
    if may_be_id(conn, id_or_prefix):
        named = or_(named, api_keys.c.id == id_or_prefix)
    query = select(*_COLUMNS).where(_KNOWN, named)
    if locked:
        query = dialects.of(conn).locked(query, api_keys)
    row = conn.execute(query).mappings().first()
    return None if row is None else _read(row)


def _in_force(now: datetime) -> tuple[ColumnElement[bool], ...]:
    return _LIVE, _KNOWN, or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)


def _read(row: RowMapping) -> ApiKey:
    made: dict[str, Any] = {name: row[name] for name in _FIELDS}
    return ApiKey(**made | {"role": Role(made["role"])})
