"""Many new rows that are much alike: PostgreSQL is told once what all of them have the same.

SQLite binds each value of each row, the same or not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table

from noonday.store import bulk, dialects, shortcuts
from noonday.store.bulk import Values
from noonday.store.shortcuts import Asked

__all__ = ["insert_alike"]

_MANY: Final = 8  # rows; of fewer each statement would be another one


def insert_alike(conn: Connection, table: Table, rows: Sequence[Values]) -> Asked:
    """As `insert`."""
    if len(rows) < _MANY or dialects.of(conn) is not dialects.POSTGRES:
        return dialects.of(conn).insert(conn, table, rows)
    columns = tuple(rows[0])
    made = bulk.columns_of(rows, columns, bulk.postgres_converters(table, columns))
    shared: dict[str, Any] = {}
    single: dict[str, Sequence[Any]] = {}
    for name, values in zip(columns, made, strict=True):
        if values.count(values[0]) != len(values):
            single[name] = values
        elif values[0] is not None or table.c[name].server_default is not None:  # else it is empty anyway
            shared[name] = values[0]
    if not single:
        return dialects.of(conn).insert(conn, table, rows)
    sql = bulk.postgres_insert(table, (*shared,), (*single,))
    return shortcuts.ask(conn, sql, (*shared.values(), *map(bulk.array_text, single.values())))
