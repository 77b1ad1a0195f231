"""What SQLite and PostgreSQL answer differently, as the rest of the store asks for it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Protocol

from sqlalchemy import Column, ColumnElement, Connection, ScalarSelect, Select, Table

from noonday.store.bulk import Change, Columns, Values
from noonday.store.shortcuts import Asked

Passes = Callable[[ColumnElement[Any]], ColumnElement[bool]]


class Answers(Protocol):
    """What each database answers differently."""

    name: str

    def skip_locked(self, query: Select[Any], *tables: Table) -> Select[Any]:
        """Lock the rows of these tables, leaving out what another transaction holds."""
        ...

    def locked(self, query: Select[Any], *tables: Table) -> Select[Any]:
        """Lock the rows of these tables, waiting for whoever holds them."""
        ...

    def shared(self, query: Select[Any], *tables: Table) -> Select[Any]:
        """Keep these rows from being changed, leaving out what another transaction is changing."""
        ...

    def kept(self, query: Select[Any], *tables: Table) -> Select[Any]:
        """Keep everybody from owning these rows, waiting for whoever does; they may still be changed."""
        ...

    def owned(self, query: Select[Any], *tables: Table) -> Select[Any]:
        """Own these rows, waiting for all who keep or change them."""
        ...

    def now(self, conn: Connection, own: datetime) -> datetime:
        """The clock that all holders of a lease share: the database's, or this machine's own."""
        ...

    def impatient(self, conn: Connection, span: timedelta) -> None:
        """Let go of everything if this transaction's process stands still for so long."""
        ...

    def steady(self, conn: Connection) -> None:
        """All looks of this transaction, of which there was none yet, see the same moment."""
        ...

    def along_indexes(self, conn: Connection) -> None:
        """The looks of this transaction take an index wherever there is one, whatever statistics say."""
        ...

    def among(self, column: ColumnElement[Any], values: Collection[str]) -> ColumnElement[bool]:
        """`column IN (values)` with one parameter, so that the statement stays the same for any number."""
        ...

    def listed(self, column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
        """As `among`, for a statement that is made once: the parameter of this name is given later."""
        ...

    def one_by_one(self, column: Column[Any], name: str, *queries: Select[Any]) -> list[Select[Any]]:
        """What these find where the column is one of the listed values, to be put together by UNION ALL; each
        value is looked up by itself, however many rows there are of others."""
        ...

    def many(self, values: Collection[str]) -> Any:
        """The value of such a parameter."""
        ...

    def picked(self, column: ColumnElement[Any], query: ScalarSelect[Any]) -> ColumnElement[bool]:
        """`column IN (query)` for a query that depends on the row beside it: found by the column's index."""
        ...

    def has_item(self, column: ColumnElement[Any], item: str) -> ColumnElement[bool]:
        """Is the text among the items of a JSON list?"""
        ...

    def any_item(self, column: ColumnElement[Any], passes: Passes) -> ColumnElement[bool]:
        """Does any text among the items of a JSON list pass?"""
        ...

    def stored_instant(self, text: str) -> ColumnElement[Any]:
        """An instant in the form in which the database gave it; ValueError for what is none."""
        ...

    def seconds_between(
        self, first: ColumnElement[Any], last: ColumnElement[Any]
    ) -> ColumnElement[float]: ...

    def text_of(self, column: ColumnElement[Any], key: str) -> ColumnElement[str]:
        """The text under a key of a JSON object."""
        ...

    def first_item(self, column: ColumnElement[Any]) -> ColumnElement[str]:
        """The first text of a JSON list."""
        ...

    def insert(
        self, conn: Connection, table: Table, rows: Sequence[Values], unique: Sequence[str] = ()
    ) -> Asked:
        """Insert in bulk; with `unique`, rows whose slot is taken are left out. Its count: how many went in.
        As of changes, nobody waits for it who does not ask."""
        ...

    def update(self, conn: Connection, table: Table, rows: Sequence[Values], key: str = "id") -> Asked:
        """Set in each row named by `key` the row's other values; all rows name the same columns. Nobody waits
        for it: that it failed is told by the next answer that is read, its own or not, or by the commit."""
        ...

    def change(
        self, conn: Connection, table: Table, ids: Sequence[str], each: Columns, same: Values, key: str = "id"
    ) -> Asked:
        """As `update`, by columns: each row gets its value of `each`, which come in the order of the ids, and
        all get those of `same`."""
        ...

    def change_both(self, one: Change, other: Change) -> Callable[[Connection], object]:
        """Two changes of different tables, neither of them empty, in one statement where that can be: all but
        sent. Nobody waits for it then."""
        ...

    def change_held(
        self, conn: Connection, table: Table, tokens: Mapping[str, str], each: Columns, same: Values
    ) -> Asked:
        """As `change`, of rows whose `lease_token` is still the one given with their id; the ids of these."""
        ...

    def dispatch(self, conn: Connection) -> None:
        """What nobody waits for yet goes to the database now, which works on it meanwhile."""
        ...

    def increase(self, conn: Connection, table: Table, rows: Sequence[Values], tell: str) -> dict[str, Any]:
        """Add each row's values to the row with its id; the new values of the column `tell`, by id."""
        ...

    def notify(self, conn: Connection, payload: str) -> None:
        """Wake other processes after the commit."""
        ...

    def default(self, conn: Connection, column: Column[Any], value: int) -> None:
        """What a plain INSERT that does not name the column gets from now on, where that can be changed."""
        ...

    def migration_lock(self, conn: Connection) -> Any:
        """A context in which only one process migrates this database."""
        ...
