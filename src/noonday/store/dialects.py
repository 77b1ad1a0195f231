"""The only place where SQLite and PostgreSQL differ: types, locks, bulk statements, notices."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import compress
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Dialect,
    Float,
    ScalarSelect,
    Select,
    Table,
    Text,
    TypeDecorator,
    any_,
    bindparam,
    case,
    exists,
    extract,
    false,
    func,
    literal,
    literal_column,
    null,
    select,
    true,
    type_coerce,
    union_all,
)
from sqlalchemy import cast as cast_to
from sqlalchemy.dialects import postgresql

from noonday.store import bulk, shortcuts
from noonday.store.answers import Answers, Passes
from noonday.store.bulk import Change, Columns, Values
from noonday.store.jsontext import dumps, loads
from noonday.store.shortcuts import NOTHING, Asked, Known

__all__ = ["CHANNEL", "POSTGRES", "SQLITE", "Answers", "Postgres", "Sqlite", "of"]

CHANNEL = "noonday"


class Sqlite:
    name = "sqlite"

    def skip_locked(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query  # the one writer holds the whole database

    def locked(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query

    def shared(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query

    def kept(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query

    def owned(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query

    def now(self, conn: Connection, own: datetime) -> datetime:
        return own

    def impatient(self, conn: Connection, span: timedelta) -> None:
        pass  # the file is locked by the process itself, for as long as it stands still

    def steady(self, conn: Connection) -> None:
        pass  # they always do

    def along_indexes(self, conn: Connection) -> None:
        pass  # likewise

    def among(self, column: ColumnElement[Any], values: Collection[str]) -> ColumnElement[bool]:
        items = func.json_each(self.many(values)).table_valued("value")
        return column.in_(select(items.c.value))

    def listed(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        items = func.json_each(bindparam(name, type_=Text)).table_valued("value")
        return column.in_(select(items.c.value))

    def one_by_one(self, column: Column[Any], name: str, *queries: Select[Any]) -> list[Select[Any]]:
        return [query.where(self.listed(column, name)) for query in queries]  # it never does otherwise

    def many(self, values: Collection[str]) -> Any:
        return dumps(list(values))

    def picked(self, column: ColumnElement[Any], query: ScalarSelect[Any]) -> ColumnElement[bool]:
        return column.in_(query)

    def has_item(self, column: ColumnElement[Any], item: str) -> ColumnElement[bool]:
        return self.any_item(column, lambda one: one == item)

    def any_item(self, column: ColumnElement[Any], passes: Passes) -> ColumnElement[bool]:
        items = func.json_each(column).table_valued("value")
        found = exists(select(items.c.value).where(passes(items.c.value)))
        return case((func.json_valid(column) == 1, found), else_=false())

    def stored_instant(self, text: str) -> ColumnElement[Any]:
        return literal(text, Text)  # people may have written it in any form

    def seconds_between(self, first: ColumnElement[Any], last: ColumnElement[Any]) -> ColumnElement[float]:
        days = func.julianday(last, type_=Float) - func.julianday(first, type_=Float)
        return days * 86400.0

    def text_of(self, column: ColumnElement[Any], key: str) -> ColumnElement[str]:
        return self._at(column, f"$.{key}")

    def first_item(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return self._at(column, "$[0]")

    def _at(self, column: ColumnElement[Any], path: str) -> ColumnElement[str]:
        found = func.json_extract(column, path, type_=Text)
        return case((func.json_valid(column) == 1, found), else_=null())

    def insert(
        self, conn: Connection, table: Table, rows: Sequence[Values], unique: Sequence[str] = ()
    ) -> Asked:
        if not rows:
            return NOTHING
        columns = tuple(rows[0])
        sql, converters = bulk.sqlite_insert(table, columns, tuple(unique))
        values = bulk.columns_of(rows, columns, converters)
        return shortcuts.heard(conn, sql, list(zip(*values, strict=True)))

    def update(self, conn: Connection, table: Table, rows: Sequence[Values], key: str = "id") -> Asked:
        ids, each = bulk.keyed(rows, key)
        return self.change(conn, table, ids, each, {}, key)

    def change(
        self, conn: Connection, table: Table, ids: Sequence[str], each: Columns, same: Values, key: str = "id"
    ) -> Asked:
        if not ids:
            return NOTHING
        return shortcuts.heard(conn, *bulk.sqlite_change(table, (key, ids), each, same))

    def change_both(self, one: Change, other: Change) -> Callable[[Connection], object]:
        made = [bulk.sqlite_change(table, ("id", ids), each, same) for table, ids, each, same in (one, other)]
        return lambda conn: [shortcuts.heard(conn, *each) for each in made]

    def change_held(
        self, conn: Connection, table: Table, tokens: Mapping[str, str], each: Columns, same: Values
    ) -> Asked:
        # The few that are not held, all in one row: with each row the interpreter would change hands.
        query = (
            f"SELECT json_group_array(u.key) FROM json_each(?) AS u LEFT JOIN {table.name} AS t "  # noqa: S608
            "ON t.id = u.key AND t.lease_token = u.value WHERE t.id IS NULL"
        )
        lost = set(loads(conn.exec_driver_sql(query, (dumps(tokens),)).scalar_one()))
        held = [row_id not in lost for row_id in tokens]
        ids = list(compress(tokens, held))
        self.change(conn, table, ids, {name: [*compress(each[name], held)] for name in each}, same)
        return Known([(row_id,) for row_id in ids])

    def dispatch(self, conn: Connection) -> None:
        pass  # it is done when it is asked for

    def increase(self, conn: Connection, table: Table, rows: Sequence[Values], tell: str) -> dict[str, Any]:
        columns = (*(name for name in rows[0] if name != "id"), "id")
        changes = ", ".join(f"{name} = {name} + ?" for name in columns[:-1])
        made = [tuple(row[name] for name in columns) for row in rows]
        conn.exec_driver_sql(f"UPDATE {table.name} SET {changes} WHERE id = ?", made)  # noqa: S608 - own names
        query = f"SELECT id, {tell} FROM {table.name} WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608
        ids = self.many([row["id"] for row in rows])
        return {row[0]: row[1] for row in conn.exec_driver_sql(query, (ids,)).all()}

    def notify(self, conn: Connection, payload: str) -> None:
        pass  # other processes see PRAGMA data_version change

    def default(self, conn: Connection, column: Column[Any], value: int) -> None:
        pass  # a column's default cannot be changed here

    @contextmanager
    def migration_lock(self, conn: Connection) -> Iterator[None]:
        name = conn.engine.url.database
        if not name or name == ":memory:":
            yield
            return
        # On the folder, so that nothing is left behind; freed by the kernel if this process dies.
        folder = os.open(Path(name).absolute().parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)


class Postgres:
    name = "postgresql"

    def skip_locked(self, query: Select[Any], *tables: Table) -> Select[Any]:
        # NO KEY: somebody who only refers to the row (a foreign key check) need not wait.
        return query.with_for_update(of=tables, skip_locked=True, key_share=True)

    def locked(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query.with_for_update(of=tables, key_share=True)

    def shared(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query.with_for_update(of=tables, read=True, skip_locked=True)

    def kept(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query.with_for_update(of=tables, read=True, key_share=True)

    def owned(self, query: Select[Any], *tables: Table) -> Select[Any]:
        return query.with_for_update(of=tables)

    def now(self, conn: Connection, own: datetime) -> datetime:
        # Not now(): that is when the transaction began, and it may have waited for a lock since then.
        found: datetime = shortcuts.rows(conn, "SELECT clock_timestamp()")[0][0]
        return found

    def impatient(self, conn: Connection, span: timedelta) -> None:
        millis = str(max(int(span.total_seconds() * 1000), 1))
        shortcuts.ask(conn, "SELECT set_config('idle_in_transaction_session_timeout', %s, true)", (millis,))

    def steady(self, conn: Connection) -> None:
        shortcuts.ask(conn, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")

    def along_indexes(self, conn: Connection) -> None:
        shortcuts.ask(
            conn, "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true)"
        )

    def among(self, column: ColumnElement[Any], values: Collection[str]) -> ColumnElement[bool]:
        return column == any_(literal(self.many(values), _Listed(column.type)))

    def listed(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        return column == any_(bindparam(name, type_=_Listed(column.type)))

    def one_by_one(self, column: Column[Any], name: str, *queries: Select[Any]) -> list[Select[Any]]:
        # Left to choose, it gathers whatever has the state that is asked for, of everybody, while its
        # statistics know of little: a backlog would be read at every end. OFFSET 0 leaves it no choice.
        given = (
            func.unnest(bindparam(name, type_=_Listed(column.type))).table_valued("value").render_derived()
        )
        mine = [query.where(column == given.c.value) for query in queries]
        found = union_all(*mine).offset(literal_column("0")).lateral()
        return [select(*found.c).select_from(given.join(found, true()))]

    def many(self, values: Collection[str]) -> Any:
        return list(values)

    def picked(self, column: ColumnElement[Any], query: ScalarSelect[Any]) -> ColumnElement[bool]:
        return column == any_(func.array(query))

    def has_item(self, column: ColumnElement[Any], item: str) -> ColumnElement[bool]:
        return type_coerce(column, postgresql.JSONB).contains([item])

    def any_item(self, column: ColumnElement[Any], passes: Passes) -> ColumnElement[bool]:
        is_list = func.jsonb_typeof(column) == "array"
        listed = case((is_list, type_coerce(column, postgresql.JSONB)), else_=func.jsonb_build_array())
        items = func.jsonb_array_elements_text(listed).table_valued("value")
        return exists(select(items.c.value).where(passes(items.c.value)))

    def stored_instant(self, text: str) -> ColumnElement[Any]:
        found = datetime.fromisoformat(text)
        aware = found if found.tzinfo else found.replace(tzinfo=UTC)
        return literal(aware, postgresql.TIMESTAMP(timezone=True))

    def seconds_between(self, first: ColumnElement[Any], last: ColumnElement[Any]) -> ColumnElement[float]:
        return cast_to(extract("epoch", last), Float) - cast_to(extract("epoch", first), Float)

    def text_of(self, column: ColumnElement[Any], key: str) -> ColumnElement[str]:
        return func.jsonb_extract_path_text(column, key, type_=Text)

    def first_item(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        return self.text_of(column, "0")

    def insert(
        self, conn: Connection, table: Table, rows: Sequence[Values], unique: Sequence[str] = ()
    ) -> Asked:
        if not rows:
            return NOTHING
        columns = tuple(rows[0])
        sql = bulk.postgres_insert(table, (), columns, tuple(unique))
        values = bulk.columns_of(rows, columns, bulk.postgres_converters(table, columns))
        return shortcuts.ask(conn, sql, [bulk.array_text(column) for column in values])

    def update(self, conn: Connection, table: Table, rows: Sequence[Values], key: str = "id") -> Asked:
        ids, each = bulk.keyed(rows, key)
        return self.change(conn, table, ids, each, {}, key)

    def change(
        self, conn: Connection, table: Table, ids: Sequence[str], each: Columns, same: Values, key: str = "id"
    ) -> Asked:
        if not ids:
            return NOTHING
        return shortcuts.ask(conn, *bulk.postgres_change(table, (key, ids), each, same))

    def change_both(self, one: Change, other: Change) -> Callable[[Connection], object]:
        first, values = bulk.postgres_change(one.table, ("id", one.ids), one.each, one.same)
        second, others = bulk.postgres_change(other.table, ("id", other.ids), other.each, other.same)
        sql = bulk.postgres_together(first, second)
        return lambda conn: shortcuts.ask(conn, sql, values + others)

    def change_held(
        self, conn: Connection, table: Table, tokens: Mapping[str, str], each: Columns, same: Values
    ) -> Asked:
        if not tokens:
            return NOTHING
        change = bulk.postgres_change(table, ("id", [*tokens]), each, same, [*tokens.values()])
        return shortcuts.ask(conn, *change)

    def dispatch(self, conn: Connection) -> None:
        shortcuts.dispatch(conn)

    def increase(self, conn: Connection, table: Table, rows: Sequence[Values], tell: str) -> dict[str, Any]:
        columns = (*(name for name in rows[0] if name != "id"), "id")
        arrays = ", ".join(bulk.hidden_array_of(table.c[name]) for name in columns)
        changes = ", ".join(f"{name} = t.{name} + u.{name}" for name in columns[:-1])
        sql = (
            f"UPDATE {table.name} AS t SET {changes} "  # noqa: S608 - own names
            f"FROM unnest({arrays}) AS u({', '.join(columns)}) WHERE t.id = u.id RETURNING t.id, t.{tell}"
        )
        made = tuple(bulk.array_text([row[name] for row in rows]) for name in columns)
        return {row[0]: row[1] for row in shortcuts.rows(conn, sql, made)}

    def notify(self, conn: Connection, payload: str) -> None:
        shortcuts.ask(conn, "SELECT pg_notify(%s, %s)", (CHANNEL, payload))

    def default(self, conn: Connection, column: Column[Any], value: int) -> None:
        conn.exec_driver_sql(f"ALTER TABLE {column.table} ALTER COLUMN {column.name} SET DEFAULT {value:d}")

    @contextmanager
    def migration_lock(self, conn: Connection) -> Iterator[None]:
        # Held to the end of the one transaction that all steps are made in: behind a pooler there is no
        # session that could hold it for longer.
        conn.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('noonday migration'))")
        yield


class _Listed(TypeDecorator[list[Any]]):
    """A list as one parameter of the array's own type: a cast in the statement would be done for each row."""

    impl = postgresql.ARRAY
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], str]:
        return bulk.array_text


SQLITE, POSTGRES = Sqlite(), Postgres()


def of(conn: Connection) -> Answers:
    return POSTGRES if conn.dialect.name == "postgresql" else SQLITE
