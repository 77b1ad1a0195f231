"""Small facts about this database: secrets made once, cursors of slow walks."""

from __future__ import annotations

import os
from typing import Any

from sqlalchemy import Connection, Select, Text, bindparam, delete, select, update

from noonday.store import dialects
from noonday.store.dialects import Answers
from noonday.store.prepared import quick
from noonday.store.tables import meta

SIGNING = "signing_secret"
STALE_LOCKS = "stale_locks_cleared"


def get(conn: Connection, key: str) -> str | None:
    found = _value(conn, key=key)
    return found[0][0] if found else None


@quick
def _value(_: Answers) -> Select[Any]:
    return select(meta.c.value).where(meta.c.key == bindparam("key", type_=Text))


def put(conn: Connection, key: str, value: str) -> None:
    conn.execute(delete(meta).where(meta.c.key == key))
    dialects.of(conn).insert(conn, meta, [{"key": key, "value": value}], ("key",))


def count(conn: Connection, key: str) -> int:
    """A number that `add` makes grow; 0 before."""
    return int(get(conn, key) or 0)


def add(conn: Connection, key: str, more: int) -> None:
    """For what one instance at a time counts."""
    if more:
        put(conn, key, str(count(conn, key) + more))


def hold(conn: Connection, key: str) -> int:
    """As `count`, and nobody else holds it until this transaction ends."""
    dialect = dialects.of(conn)
    dialect.insert(conn, meta, [{"key": key, "value": "0"}], ("key",))
    row = dialect.locked(select(meta.c.value).where(meta.c.key == key), meta)
    return int(conn.execute(row).scalar_one())


def keep(conn: Connection, key: str, number: int) -> None:
    """The new number of what this transaction holds."""
    conn.execute(update(meta).where(meta.c.key == key).values(value=str(number)))


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
