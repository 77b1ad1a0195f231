"""The two bulk statements of planning: runs go in, and cursors move on."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Connection, Table

from noonday.store import bulk, shortcuts
from noonday.store.bulk import Columns, Values
from noonday.store.columns import Instant, instant_text
from noonday.store.jsontext import dumps
from noonday.store.shortcuts import Asked
from noonday.store.tables import SLOT, executions, jobs

_GROWING: Final = frozenset({"fire_count", "execution_count", "row_count"})


def insert_runs(conn: Connection, columns: Columns, same: Values) -> Asked:
    """Those whose slot is still free; returns how many. All have the values of `same`."""
    each, same = _divided(columns, same)
    if conn.dialect.name == "sqlite":
        sql, values = _sqlite_insert(tuple(each), tuple(same)), _at_once(executions, each, same)
        return shortcuts.heard(conn, sql, values)
    sql = bulk.postgres_insert(executions, tuple(same), tuple(each), SLOT)
    return shortcuts.ask(conn, sql, _in_arrays(each, same))


def move_cursors(conn: Connection, columns: Columns) -> None:
    """Of jobs that are locked. The counts grow by what is told, the cursor is set."""
    each, same = _divided(columns, {})
    if conn.dialect.name == "sqlite":
        conn.exec_driver_sql(_sqlite_move(tuple(each), tuple(same)), _at_once(jobs, each, same))
    else:
        shortcuts.ask(conn, _postgres_move(tuple(each), tuple(same)), _in_arrays(each, same))


def _divided(columns: Columns, same: Values) -> tuple[Columns, Values]:
    """A column in which all values are the same needs to be sent but once."""
    each, same = {}, dict(same)
    for name, values in columns.items():
        if name == "id" or values[0] != values[-1] or values.count(values[0]) < len(values):
            each[name] = values
        else:
            same[name] = values[0]
    return each, same


def _in_arrays(each: Columns, same: Values) -> tuple[Any, ...]:
    return (*same.values(), *map(bulk.array_text, each.values()))


def _at_once(table: Table, each: Columns, same: Values) -> tuple[Any, ...]:
    """Instants as text, and the rows as one JSON array of arrays."""
    instants = _instants(table)
    once = [value and instant_text(value) if name in instants else value for name, value in same.items()]
    many = [
        [value and instant_text(value) for value in values] if name in instants else values
        for name, values in each.items()
    ]
    return (*once, dumps(list(zip(*many, strict=True))))


@lru_cache
def _instants(table: Table) -> frozenset[str]:
    return frozenset(column.name for column in table.c if isinstance(column.type, Instant))


@lru_cache(maxsize=256)
def _postgres_move(each: tuple[str, ...], same: tuple[str, ...]) -> str:
    changes = [_change(name, bulk.one_of(jobs.c[name]), "t.") for name in same]
    changes += [_change(name, bulk.value_of(jobs.c[name]), "t.") for name in each if name != "id"]
    arrays = ", ".join(bulk.hidden_array_of(jobs.c[name]) for name in each)
    return (
        f"UPDATE jobs AS t SET {', '.join(changes)} "  # noqa: S608 - own names
        f"FROM unnest({arrays}) AS u({', '.join(each)}) WHERE t.id = u.id"
    )


@lru_cache(maxsize=256)
def _sqlite_insert(each: tuple[str, ...], same: tuple[str, ...]) -> str:
    values = ", ".join((*("?" * len(same)), *bulk.fields_of_rows(each).values()))
    return (
        f"INSERT INTO executions ({', '.join((*same, *each))}) SELECT {values} "  # noqa: S608 - own names
        f"FROM json_each(?) AS u WHERE true ON CONFLICT ({', '.join(SLOT)}) DO NOTHING"
    )


@lru_cache(maxsize=256)
def _sqlite_move(each: tuple[str, ...], same: tuple[str, ...]) -> str:
    fields = bulk.fields_of_rows(each)
    changes = [_change(name, "?", "jobs.") for name in same]
    changes += [_change(name, field, "jobs.") for name, field in fields.items() if name != "id"]
    return f"UPDATE jobs SET {', '.join(changes)} FROM json_each(?) AS u WHERE jobs.id = {fields['id']}"  # noqa: S608


def _change(name: str, value: str, table: str) -> str:
    return f"{name} = {table}{name} + {value}" if name in _GROWING else f"{name} = {value}"
