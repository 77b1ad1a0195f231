"""Bulk statements: arrays and unnest on PostgreSQL, one statement for many rows on SQLite."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import Column, Dialect, Table
from sqlalchemy.dialects.postgresql.base import PGDialect

from noonday.store.columns import Instant, Json, instant_text, instant_texts
from noonday.store.jsontext import dumps

Values = Mapping[str, Any]
Columns = Mapping[str, Sequence[Any]]
Converter = Callable[[Any], Any]
Prepared = tuple[str, tuple[Converter, ...]]
_MANY: Final = 8  # rows
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_DAY: Final = 86_400_000_000  # microseconds
_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


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
    """A PostgreSQL array of one kind of values as text; the driver's own way takes ten times as long.

    Instants are counted in microseconds: see `array_of`."""
    kind = next((type(value) for value in values if value is not None), int)
    if issubclass(kind, str):
        return _array_of_texts(values)
    if issubclass(kind, datetime):
        values = [None if value is None else (value - _EPOCH) // _TICK for value in values]
    return "{" + ",".join(map(str, values)).replace("None", "NULL") + "}"


def _array_of_texts(values: Sequence[str | None]) -> str:
    if None not in values:
        text = '","'.join(cast(Sequence[str], values))
        if "\\" not in text and text.count('"') == 2 * (len(values) - 1):  # nothing in them is to be escaped
            return f'{{"{text}"}}'
    items = [None if v is None else v.replace("\\", r"\\").replace('"', r"\"") for v in values]
    return "{" + ",".join(["NULL" if item is None else f'"{item}"' for item in items]) + "}"


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
    return _converted(values, convert)


def _converted(values: Sequence[Any], convert: Converter) -> Sequence[Any]:
    if convert is _plain:
        return values
    return instant_texts(values) if convert is _text_or_none else [convert(value) for value in values]


@lru_cache(maxsize=256)
def sqlite_insert(table: Table, columns: tuple[str, ...], unique: tuple[str, ...]) -> Prepared:
    conflict = f" ON CONFLICT ({', '.join(unique)}) DO NOTHING" if unique else ""
    marks = ", ".join("?" * len(columns))
    sql = f"INSERT INTO {table.name} ({', '.join(columns)}) VALUES ({marks}){conflict}"  # noqa: S608 - own names
    return sql, sqlite_converters(table, columns)


@lru_cache(maxsize=256)
def sqlite_update(table: Table, shared: tuple[str, ...], single: tuple[str, ...], at_once: bool) -> str:
    """The last of `single` names the row. At once: for rows that come as one JSON object, see `_as_text`."""
    *changing, key = single
    changes = [f"{name} = ?" for name in shared]
    if not at_once:
        changes += [f"{name} = ?" for name in changing]
        return f"UPDATE {table.name} SET {', '.join(changes)} WHERE {key} = ?"  # noqa: S608 - own names
    fields = fields_of_rows(changing) if len(changing) > 1 else dict.fromkeys(changing, "u.value")
    changes += [f"{name} = {field}" for name, field in fields.items()]
    return (
        f"UPDATE {table.name} SET {', '.join(changes)} "  # noqa: S608 - own names
        f"FROM json_each(?) AS u WHERE {table.name}.{key} = u.key"
    )


def fields_of_rows(columns: Sequence[str]) -> dict[str, str]:
    """Where the columns are in rows that come as JSON arrays, each of which is `u.value`."""
    return {name: f"json_extract(u.value, '$[{place}]')" for place, name in enumerate(columns)}


_POSTGRES: Dialect = cast(Any, PGDialect)()


def kind_of(column: Column[Any]) -> str:
    return column.type.compile(_POSTGRES)


def array_of(column: Column[Any]) -> str:
    """A parameter for `array_text`. Instants are counted: to write one as text, and to read that, takes both
    sides several times as long. `value_of` makes instants of them again.
    """
    return f"%s::{'BIGINT' if isinstance(column.type, Instant) else kind_of(column)}[]"


def hidden_array_of(column: Column[Any]) -> str:
    """The same, for changes of rows that are there. In a SELECT the planner does not see how long it is: of
    a small table it would rather read all of it."""
    return f"(SELECT {array_of(column)})"


def one_of(column: Column[Any]) -> str:
    """A parameter for one value that all rows have the same."""
    return f"%s::{kind_of(column)}"


def value_of(column: Column[Any]) -> str:
    """The value of a column in a row `u` of arrays. Days and the rest of a day apart: an interval is
    multiplied as a float, which counts the microseconds of three centuries and no more."""
    field = f"u.{column.name}"
    if not isinstance(column.type, Instant):
        return field
    days, rest = f"{field} / {_DAY} * interval '24 hours'", f"mod({field}, {_DAY}) * interval '1 microsecond'"
    return f"timestamptz 'epoch' + {days} + {rest}"


@lru_cache(maxsize=512)
def postgres_insert(
    table: Table, shared: tuple[str, ...], single: tuple[str, ...], unique: tuple[str, ...] = ()
) -> str:
    """`shared` are the columns in which all rows have the same value; those of `single` come as arrays."""
    values = [one_of(table.c[name]) for name in shared] + [value_of(table.c[name]) for name in single]
    arrays = ", ".join(array_of(table.c[name]) for name in single)
    conflict = f" ON CONFLICT ({', '.join(unique)}) DO NOTHING" if unique else ""
    return (
        f"INSERT INTO {table.name} ({', '.join((*shared, *single))}) SELECT {', '.join(values)} "  # noqa: S608 - own names
        f"FROM unnest({arrays}) AS u({', '.join(single)}){conflict}"
    )


@lru_cache(maxsize=256)
def postgres_converters(table: Table, columns: tuple[str, ...]) -> tuple[Converter, ...]:
    return tuple(_converter(table.c[name], _plain) for name in columns)


@lru_cache(maxsize=256)
def sqlite_converters(table: Table, columns: tuple[str, ...]) -> tuple[Converter, ...]:
    return tuple(_converter(table.c[name], _text_or_none) for name in columns)


@lru_cache(maxsize=1024)
def postgres_update(table: Table, shared: tuple[str, ...], single: tuple[str, ...], held: bool) -> str:
    """The last of `single` names the row."""
    changes = [f"{name} = {one_of(table.c[name])}" for name in shared]
    changes += [f"{name} = {value_of(table.c[name])}" for name in single[:-1]]
    arrays = [hidden_array_of(table.c[name]) for name in single]
    key = single[-1]
    where = f"t.{key} = u.{key}"
    if held:
        arrays.append("(SELECT %s::text[])")
        single = (*single, "token")
        where += f" AND t.lease_token = u.token RETURNING t.{key}"
    return (
        f"UPDATE {table.name} AS t SET {', '.join(changes)} "  # noqa: S608 - own names
        f"FROM unnest({', '.join(arrays)}) AS u({', '.join(single)}) WHERE {where}"
    )


class Change(NamedTuple):
    """Of rows of one table, by their ids: what each of them gets, and what all of them get."""

    table: Table
    ids: Sequence[str]
    each: Columns
    same: Values


@lru_cache(maxsize=256)
def postgres_together(one: str, other: str) -> str:
    return f"WITH one AS ({one}) {other}"


Keyed = tuple[str, Sequence[str]]  # the column that names rows, and the names


def keyed(rows: Sequence[Values], key: str) -> tuple[list[str], Columns]:
    """Rows side by side: what names them, and their other values."""
    names = [name for name in rows[0] if name != key] if rows else []
    return [row[key] for row in rows], {name: [row[name] for row in rows] for name in names}


def sqlite_change(table: Table, keyed: Keyed, each: Columns, same: Values) -> tuple[str, Any]:
    """Many rows go in as one text: row by row the interpreter would be let go of and asked for each time."""
    key, keys = keyed
    shared, single = _divided(each, same, sqlite_converters(table, (*same, *each)))
    columns = [*single.values()]
    if len(keys) >= _MANY and (text := _as_text(keys, columns)):
        return sqlite_update(table, (*shared,), (*single, key), at_once=True), (*shared.values(), text)
    sql = sqlite_update(table, (*shared,), (*single, key), at_once=False)
    return sql, [(*shared.values(), *row) for row in zip(*columns, keys, strict=True)]


def _as_text(keys: Sequence[str], columns: Sequence[Sequence[Any]]) -> str | None:
    """By its key the value of each row, an array of them unless there is one column; None if something in
    them might not come out of JSON as it went in."""
    rows = columns[0] if len(columns) == 1 else [*zip(*columns, strict=True)] or keys
    try:
        text = _encode(dict(zip(keys, rows, strict=True)))
    except (ValueError, TypeError):
        return None
    return None if "\\u" in text else text


def postgres_change(
    table: Table, keyed: Keyed, each: Columns, same: Values, tokens: Sequence[str] | None = None
) -> tuple[str, tuple[Any, ...]]:
    """With `tokens` only rows that still have theirs are changed, and told."""
    key, keys = keyed
    shared, single = _divided(each, same, postgres_converters(table, (*same, *each)))
    sql = postgres_update(table, (*shared,), (*single, key), tokens is not None)
    arrays = [*single.values(), keys, *([] if tokens is None else [tokens])]
    return sql, (*shared.values(), *map(array_text, arrays))


def _divided(
    each: Columns, same: Values, converters: Sequence[Converter]
) -> tuple[dict[str, Any], dict[str, Sequence[Any]]]:
    """A column of `each` in which all values are the same needs to be sent but once."""
    converting = iter(converters)
    shared = {name: convert(value) for (name, value), convert in zip(same.items(), converting, strict=False)}
    single: dict[str, Sequence[Any]] = {}
    for (name, values), convert in zip(each.items(), converting, strict=True):
        if _alike(values, convert):
            shared[name] = convert(values[0])
        else:
            single[name] = _converted(values, convert)
    return shared, single
