"""Bulk statements: arrays and unnest on PostgreSQL, one statement for many rows on SQLite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from itertools import repeat
from typing import Any, cast

from sqlalchemy import Column, Dialect, Table
from sqlalchemy.dialects.postgresql.base import PGDialect

from noonday.store.columns import Instant, Json, instant_text
from noonday.store.jsontext import dumps

Values = Mapping[str, Any]
Columns = Mapping[str, Sequence[Any]]
Converter = Callable[[Any], Any]
Prepared = tuple[str, tuple[Converter, ...]]


def _plain(value: Any) -> Any:
    return value


def _json_or_none(value: Any) -> str | None:
    return None if value is None else dumps(value)


def _text_or_none(value: datetime | None) -> str | None:
    return None if value is None else instant_text(value)


def _converter(column: Column[Any], instants: Converter) -> Converter:
    if isinstance(column.type, Json):
        return _json_or_none
    if isinstance(column.type, Instant):
        return instants
    return _plain


def array_text(values: Sequence[Any]) -> str:
    """A PostgreSQL array of one kind of values as text; the driver's own way takes ten times as long."""
    kind = next((type(value) for value in values if value is not None), int)
    if issubclass(kind, str):
        items = [None if v is None else v.replace("\\", r"\\").replace('"', r"\"") for v in values]
        return "{" + ",".join(["NULL" if item is None else f'"{item}"' for item in items]) + "}"
    if issubclass(kind, datetime):
        return "{" + ",".join(["NULL" if v is None else f'"{v.isoformat()}"' for v in values]) + "}"
    return "{" + ",".join(["NULL" if v is None else str(v) for v in values]) + "}"


def columns_of(
    rows: Sequence[Values], columns: Sequence[str], converters: Sequence[Converter]
) -> list[Sequence[Any]]:
    made = []
    for name, convert in zip(columns, converters, strict=True):
        made.append(_convert([row[name] for row in rows], convert))
    return made


def _alike(values: Sequence[Any], convert: Converter) -> bool:
    """Equal is not the same where JSON is made of it: 1, 1.0 and True are three values there."""
    first = values[0]
    if convert is _json_or_none:
        return all(value is first for value in values)
    return values.count(first) == len(values)


def _convert(values: Sequence[Any], convert: Converter) -> Sequence[Any]:
    if convert is _plain:
        return values
    first = values[0]
    if _alike(values, convert):  # as most columns of a batch
        return [convert(first)] * len(values)
    return [convert(value) for value in values]


@lru_cache(maxsize=256)
def sqlite_insert(table: Table, columns: tuple[str, ...], unique: tuple[str, ...]) -> Prepared:
    conflict = f" ON CONFLICT ({', '.join(unique)}) DO NOTHING" if unique else ""
    marks = ", ".join("?" * len(columns))
    sql = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks}){conflict}"  # noqa: S608 - own names
    return sql, tuple(_converter(table.c[name], _text_or_none) for name in columns)


@lru_cache(maxsize=256)
def sqlite_update(table: Table, columns: tuple[str, ...]) -> Prepared:
    changes = ", ".join(f"{name} = ?" for name in columns[:-1])
    sql = f"UPDATE {table.name} SET {changes} WHERE {columns[-1]} = ?"  # noqa: S608 - own names
    return sql, tuple(_converter(table.c[name], _text_or_none) for name in columns)


_POSTGRES: Dialect = cast(Any, PGDialect)()


def array_of(column: Column[Any]) -> str:
    return f"%s::{column.type.compile(_POSTGRES)}[]"


@lru_cache(maxsize=256)
def postgres_insert(table: Table, columns: tuple[str, ...], unique: tuple[str, ...]) -> Prepared:
    conflict = f" ON CONFLICT ({', '.join(unique)}) DO NOTHING" if unique else ""
    arrays = ", ".join(array_of(table.c[name]) for name in columns)
    names = ", ".join(columns)
    sql = f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({arrays}) AS u({names}){conflict}"  # noqa: S608 - own names
    return sql, postgres_converters(table, columns)


@lru_cache(maxsize=256)
def postgres_converters(table: Table, columns: tuple[str, ...]) -> tuple[Converter, ...]:
    return tuple(_converter(table.c[name], _plain) for name in columns)


@lru_cache(maxsize=1024)
def postgres_update(table: Table, columns: tuple[str, ...], same: tuple[bool, ...], held: bool) -> str:
    kinds = {name: table.c[name].type.compile(_POSTGRES) for name in columns}
    shared = [name for name, once in zip(columns, same, strict=False) if once]
    single = [name for name in columns if name not in shared]
    changes = [f"{name} = %s::{kinds[name]}" for name in shared]
    changes += [f"{name} = u.{name}" for name in single[:-1]]
    arrays = [f"(SELECT %s::{kinds[name]}[])" for name in single]
    key = columns[-1]
    where = f"t.{key} = u.{key}"
    if held:
        arrays.append("(SELECT %s::text[])")
        single.append("token")
        where += f" AND t.lease_token = u.token RETURNING t.{key}"
    return (
        f"UPDATE {table.name} AS t SET {', '.join(changes)} "  # noqa: S608 - own names
        f"FROM unnest({', '.join(arrays)}) AS u({', '.join(single)}) WHERE {where}"
    )


Keyed = tuple[str, Sequence[str]]  # the column that names rows, and the names


def keyed(rows: Sequence[Values], key: str) -> tuple[list[str], Columns]:
    """Rows side by side: what names them, and their other values."""
    names = [name for name in rows[0] if name != key] if rows else []
    return [row[key] for row in rows], {name: [row[name] for row in rows] for name in names}


def sqlite_change(
    table: Table, keyed: Keyed, each: Columns, same: Values
) -> tuple[str, list[tuple[Any, ...]]]:
    key, keys = keyed
    sql, converters = sqlite_update(table, (*same, *each, key))
    shared = [repeat(convert(value)) for value, convert in zip(same.values(), converters, strict=False)]
    single = [
        _convert(values, convert)
        for values, convert in zip(each.values(), converters[len(same) :], strict=False)
    ]
    return sql, list(zip(*shared, *single, keys, strict=False))


def postgres_change(
    table: Table, keyed: Keyed, each: Columns, same: Values, tokens: Sequence[str] | None = None
) -> tuple[str, tuple[Any, ...]]:
    """A column of `each` in which all values are the same is sent once, not once for each row.

    With `tokens` only rows that still have theirs are changed, and told.
    """
    key, keys = keyed
    columns = (*same, *each, key)
    converters = postgres_converters(table, columns)
    values: list[Any] = [convert(value) for value, convert in zip(same.values(), converters, strict=False)]
    once = [True] * len(same)
    for found, convert in zip(each.values(), converters[len(same) :], strict=False):
        equal = _alike(found, convert)
        once.append(equal)
        values.append(convert(found[0]) if equal else array_text(_convert(found, convert)))
    sql = postgres_update(table, columns, tuple(once), tokens is not None)
    shared = [value for value, equal in zip(values, once, strict=True) if equal]
    single = [value for value, equal in zip(values, once, strict=True) if not equal]
    held = () if tokens is None else (array_text(tokens),)
    return sql, (*shared, *single, array_text(keys), *held)
