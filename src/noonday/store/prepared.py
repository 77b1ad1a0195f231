"""Statements that are made once for each kind of database: to make one takes longer than to run it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Final

from sqlalchemy import (
    BindParameter,
    ClauseElement,
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

from noonday.store import at_once, bulk, dialects, shortcuts
from noonday.store.dialects import Answers
from noonday.store.shortcuts import Asked, Heard

__all__ = ["make_all", "prepared", "quick", "spelled_out"]

_PLACES: Final = re.compile(r"%\((\w+)\)s")


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
        return conn.execute(statement, _with_lists(dialect, values))


class quick:
    """As `prepared`, for what runs many times a second: the answer is all its rows. What is selected needs no
    more than the driver makes of it, and each parameter has a type. Who needs the answer only later asks."""

    declared: ClassVar[list[quick]] = []

    def __init__(self, make: Callable[[Answers], Executable]) -> None:
        self.declared.append(self)
        self._make = make
        self._prepared = prepared(make)
        self._at_once: at_once.Rows | None = None  # for SQLite, once it was asked for
        self._text = ""  # for PostgreSQL
        self._names: list[str] = []  # of its parameters, in their order

    def __call__(self, conn: Connection, **values: Any) -> Sequence[Sequence[Any]]:
        return self.ask(conn, **values).rows()

    def ask(self, conn: Connection, **values: Any) -> Asked:
        dialect = dialects.of(conn)
        if dialect.name == "sqlite":
            found = self._rows(conn).ask(conn, _with_lists(dialect, values))
            return Heard(self._prepared(conn, **values)) if found is None else found
        if not self._text:
            self._spell(conn)
        return shortcuts.ask(conn, self._text, [_sent(values[name]) for name in self._names])

    def made(self, conn: Connection) -> None:
        """Ahead of its first use."""
        if dialects.of(conn).name == "sqlite":
            self._rows(conn)
        elif not self._text:
            self._spell(conn)

    def _rows(self, conn: Connection) -> at_once.Rows:
        if self._at_once is None:
            self._at_once = at_once.Rows(spelled_out(self._make(dialects.of(conn))), conn.dialect)
        return self._at_once

    def _spell(self, conn: Connection) -> None:
        statement = spelled_out(self._make(dialects.of(conn)))
        assert isinstance(statement, ClauseElement)
        made = str(statement.compile(dialect=conn.dialect))
        self._names = _PLACES.findall(made)
        self._text = _PLACES.sub("%s", made)


def make_all(conn: Connection) -> None:
    """All that run many times a second, so that the first to use them need not wait for it."""
    for one in quick.declared:
        one.made(conn)


def _with_lists(dialect: Answers, values: Mapping[str, Any]) -> dict[str, Any]:
    """Each collection as one value."""
    return {name: dialect.many(value) if _is_list(value) else value for name, value in values.items()}


def _sent(value: Any) -> Any:
    return bulk.array_text([*value]) if _is_list(value) else value


def _is_list(value: Any) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str)


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
