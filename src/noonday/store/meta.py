"""Small facts about this database: secrets made once, cursors of slow walks."""

from __future__ import annotations

import os

from sqlalchemy import Connection, delete, select

from noonday.store import dialects
from noonday.store.tables import meta

SIGNING = "signing_secret"


def get(conn: Connection, key: str) -> str | None:
    found: str | None = conn.execute(select(meta.c.value).where(meta.c.key == key)).scalar()
    return found


def put(conn: Connection, key: str, value: str) -> None:
    conn.execute(delete(meta).where(meta.c.key == key))
    dialects.of(conn).insert(conn, meta, [{"key": key, "value": value}], ("key",))


def drop(conn: Connection, key: str) -> None:
    conn.execute(delete(meta).where(meta.c.key == key))


def secret(conn: Connection, name: str = SIGNING) -> bytes:
    """Thirty-two bytes of chance, made when first asked for and the same for everybody ever after."""
    fresh = {"key": name, "value": os.urandom(32).hex()}
    found = get(conn, name)
    if found is None:
        dialects.of(conn).insert(conn, meta, [fresh], ("key",))
        found = get(conn, name)
    assert found is not None
    return bytes.fromhex(found)
