"""Statements that are made once for each kind of database: to make one takes longer than to run it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from sqlalchemy import Connection, CursorResult, Executable

from noonday.store import dialects
from noonday.store.dialects import Answers

__all__ = ["prepared"]


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
            statement = self._made.setdefault(dialect.name, self._make(dialect))
        for name, value in values.items():
            if isinstance(value, Collection) and not isinstance(value, str):
                values[name] = dialect.many(value)
        return conn.execute(statement, values)
