"""Pages that go on after the last row seen: nothing comes twice or is missed where others add and remove."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    Text,
    and_,
    literal,
    or_,
    type_coerce,
)

from noonday.domain.errors import Invalid, Problem
from noonday.store import dialects
from noonday.store.columns import Instant
from noonday.store.pages import Mark
from noonday.store.reading import may_be_id

_KEY: Final = "sorted_by"
_ID: Final = "sorted_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """By a column and then by id, so that no two rows are equal; rows without a value are last either way."""

    name: str  # with a minus for the reverse, as in the address
    column: ColumnElement[Any]
    id: ColumnElement[Any]

    @property
    def reverse(self) -> bool:
        return self.name.startswith("-")


def sorted_by(conn: Connection, query: Select[Any], order: Order, after: Mark | None) -> Select[Any]:
    """The rows in order, from after the mark on; with the two columns that `mark_of` reads."""
    if after is not None:
        query = query.where(_beyond(conn, order, after))
    if order.column is not order.id:
        query = query.order_by((order.column.desc() if order.reverse else order.column.asc()).nulls_last())
    query = query.order_by(order.id.desc() if order.reverse else order.id.asc())
    # As it is stored: a time that somebody wrote by hand sorts by its own letters on SQLite.
    return query.add_columns(type_coerce(order.column, Text).label(_KEY), order.id.label(_ID))


def mark_of(rows: Sequence[Row[Any]], limit: int, order: Order) -> Mark | None:
    """Where the next page goes on, of rows that were asked for with one more than the limit."""
    if len(rows) <= limit:
        return None
    last = rows[limit - 1]._mapping
    key = last[_KEY]
    text = key.isoformat() if isinstance(key, datetime) else None if key is None else str(key)
    return Mark(order=order.name, key=None if order.column is order.id else text, id=str(last[_ID]))


def _beyond(conn: Connection, order: Order, mark: Mark) -> ColumnElement[bool]:
    if mark.order != order.name or not may_be_id(conn, mark.id):
        raise _refused()
    further = order.id < mark.id if order.reverse else order.id > mark.id
    if order.column is order.id:
        return further
    if mark.key is None:
        return and_(order.column.is_(None), further)
    try:
        key = _stored(conn, order.column, mark.key)
    except (ValueError, OverflowError):
        raise _refused() from None
    beyond = order.column < key if order.reverse else order.column > key
    return or_(beyond, and_(order.column == key, further), order.column.is_(None))


def _stored(conn: Connection, column: ColumnElement[Any], text: str) -> ColumnElement[Any]:
    if isinstance(column.type, Instant):
        return dialects.of(conn).stored_instant(text)
    if isinstance(column.type, Integer):
        return literal(int(text[:18]), BigInteger)
    return literal(text, Text)


def _refused() -> Invalid:
    return Invalid(Problem("cursor", "is not one that this list gave for this order"))
