"""All rows of a statement as one row of JSON, on SQLite: with each row that is read the interpreter changes
hands, and to get it back from a busy event loop takes longer than to read a hundred rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Dialect, Executable, Float, Numeric, SelectBase, func, select
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.exc import OperationalError

from noonday.store.columns import instant_text
from noonday.store.jsontext import loads
from noonday.store.shortcuts import Known

__all__ = ["Rows"]

_SPELLING: Dialect = SQLiteDialect(paramstyle="named")


class Rows:
    """A statement whose answer comes at once, in the values that the library would make of it."""

    def __init__(self, statement: Executable, dialect: Dialect) -> None:
        self._sql = ""
        self._own: dict[str, Any] = {}  # parameters that the statement has values for
        self._reading: list[tuple[int, Callable[[Any], Any]]] = []
        if not isinstance(statement, SelectBase) or _has_fractions(statement):
            return  # a float would lose its last digits
        rows = statement.subquery()
        array = func.json_group_array(func.json_array(*rows.c))
        made = select(array).compile(dialect=_SPELLING)
        self._sql = str(made)
        self._own = {name: value for name, value in made.params.items() if value is not None}
        for place, column in enumerate(rows.c):
            read = column.type.dialect_impl(dialect).result_processor(dialect, None)
            if read is not None:
                self._reading.append((place, read))

    def ask(self, conn: Connection, values: Mapping[str, Any]) -> Known | None:
        """None if they cannot come this way. Lists come as the dialect writes them."""
        if not self._sql:
            return None
        sent = self._own | {
            name: instant_text(value) if isinstance(value, datetime) else value
            for name, value in values.items()
        }
        try:
            rows = loads(conn.exec_driver_sql(self._sql, sent).scalar_one())
        except OperationalError:  # bytes, that somebody put into a text
            return None
        for place, read in self._reading:
            for row in rows:
                if row[place] is not None:
                    row[place] = read(row[place])
        return Known(rows)


def _has_fractions(statement: SelectBase) -> bool:
    return any(isinstance(one.type, Float | Numeric) for one in statement.selected_columns)
