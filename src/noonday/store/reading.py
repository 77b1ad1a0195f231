"""Careful reading of single columns: a wrong value names its column and harms its own row alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast
from uuid import UUID

from sqlalchemy import Connection, RowMapping

from noonday.store.jsontext import Unreadable

Row = Mapping[str, Any] | RowMapping


class RowError(ValueError):
    """A row that cannot be read; names the column."""


def readable(row: Row, name: str) -> Any:
    value = row[name]
    if isinstance(value, Unreadable):
        raise RowError(f"{name}: {value}")
    return value


def instant(row: Row, name: str) -> datetime | None:
    value = row[name]
    if type(value) is Unreadable:
        raise RowError(f"{name}: {value}")
    return cast("datetime | None", value)


def a_list(row: Row, name: str) -> list[Any]:
    value = readable(row, name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise RowError(f"{name}: {value!r} is not a list")
    return value


def an_object(row: Row, name: str) -> dict[str, Any]:
    value = readable(row, name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise RowError(f"{name}: {value!r} is not an object")
    return value


def as_id(conn: Connection, text: str) -> str | None:
    """As the database writes it. PostgreSQL knows UUIDs alone; on SQLite people may have used any text."""
    if conn.dialect.name != "postgresql":
        return text
    try:
        return str(UUID(text))
    except ValueError:
        return None


def may_be_id(conn: Connection, text: str) -> bool:
    return as_id(conn, text) is not None
