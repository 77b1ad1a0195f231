"""Statements that are made once for each kind of database: to make one takes longer than to run it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    CursorResult,
    Executable,
    Integer,
    String,
    literal_column,
    null,
)
from sqlalchemy.sql.visitors import ExternallyTraversible, replacement_traverse

from noonday.store import dialects
from noonday.store.dialects import Answers

__all__ = ["prepared", "spelled_out"]


class prepared:
    """Decorates what makes a statement, given the dialect; its parameters have names: `bindparam("now")`,
    `dialect.listed(column, "ids")`. Called with a connection and their values; a collection is one value.
    """

    def __init__(self, make: Callable[[Answers], Executable]) -> None:
        self._make = make
        self._made: dict[str, Executable] = {}

    def __call__(self, conn: Connection, **values: Any) -> CursorResult[*tuple[Any, ...]]:
        dialect = dialects.of(conn)
        statement = self._made.get(dialect.name)
        if statement is None:
            statement = self._made.setdefault(dialect.name, spelled_out(self._make(dialect)))
        for name, value in values.items():
            if isinstance(value, Collection) and not isinstance(value, str):
                values[name] = dialect.many(value)
        return conn.execute(statement, values)


def spelled_out(statement: Executable) -> Executable:
    """With its own numbers and words in the text: each parameter costs something at every call."""
    assert isinstance(statement, ExternallyTraversible)
    made = replacement_traverse(statement, {}, _constant)
    assert isinstance(made, Executable)
    return made


def _constant(element: Any, **_: Any) -> ColumnElement[Any] | None:
    if not isinstance(element, BindParameter) or element.required:
        return None
    if element.value is None:
        return null()
    if not isinstance(element.type, String | Integer):
        return None
    if element.expanding:
        return literal_column(f"({', '.join(map(_text, element.value))})", element.type)
    return literal_column(_text(element.value), element.type)


def _text(value: str | int) -> str:
    return f"{value:d}" if isinstance(value, int) else "'" + value.replace("'", "''") + "'"
