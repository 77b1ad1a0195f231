"""The types of columns, each in the form its database keeps best."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import Dialect, Text, TypeDecorator
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeEngine

from noonday.store.jsontext import Unreadable, dumps, loads

_LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)
_REMEMBERED: Final = 16_384  # instants; a run's moment is written in half a dozen places


@lru_cache(maxsize=_REMEMBERED)
def instant_text(value: datetime) -> str:
    """Fixed width, so that the order of texts is the order of instants."""
    if value.tzinfo is not UTC:
        value = value.astimezone(UTC)
    return value.isoformat(" ", "microseconds")[:26]


def instant_texts(values: Iterable[datetime | None]) -> list[str | None]:
    """As `instant_text`, of many that lie close together: what those of one second share is made once."""
    made: list[str | None] = []
    second, shared = _LONG_AGO, ""
    for value in values:
        if value is None:
            made.append(None)
            continue
        past = value - second
        if past.seconds or past.days:
            text = instant_text(value)
            second, shared = value.replace(microsecond=0), text[:20]
            made.append(text)
        else:
            made.append(f"{shared}{past.microseconds:06d}")
    return made


def read_instant(value: Any) -> Any:
    """Also what people write by hand: any ISO form, UTC unless it says otherwise."""
    if value is None:
        return None
    try:
        return datetime.fromisoformat(value + "+00:00")  # our own form: one call, and the zone is UTC itself
    except (ValueError, TypeError):
        pass
    try:
        instant = datetime.fromisoformat(value)
    except (ValueError, TypeError):
        return Unreadable(value)
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _unless_none(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def process(value: Any) -> Any:
        return None if value is None else convert(value)

    return process


class Id(TypeDecorator[str]):
    """A UUID in its 36-character form."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.UUID(as_uuid=False))
        return dialect.type_descriptor(Text())

    def result_processor(self, dialect: Dialect, coltype: object) -> None:
        return None  # text already: see the loader in engines.py


class Instant(TypeDecorator[datetime]):
    """An aware UTC instant: timestamptz, or text `YYYY-MM-DD HH:MM:SS.ffffff`."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.TIMESTAMP(timezone=True))
        return dialect.type_descriptor(Text())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        return None if dialect.name == "postgresql" else _unless_none(instant_text)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        return None if dialect.name == "postgresql" else read_instant


class Json(TypeDecorator[Any]):
    """jsonb, or its text."""

    impl = Text
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(postgresql.JSONB(none_as_null=True))
        return dialect.type_descriptor(Text())

    def bind_processor(self, dialect: Dialect) -> Callable[[Any], Any] | None:
        if dialect.name == "postgresql":
            return super().bind_processor(dialect)
        return _unless_none(dumps)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        return None if dialect.name == "postgresql" else _unless_none(loads)


class utc_now(FunctionElement[datetime]):
    """The database's clock, as default of rows that people insert by hand."""

    type = Instant()
    inherit_cache = True


class fresh_id(FunctionElement[str]):
    type = Id()
    inherit_cache = True


@compiles(utc_now, "sqlite")
def _sqlite_now(element: utc_now, compiler: Any, **_: Any) -> str:
    return "(strftime('%Y-%m-%d %H:%M:%f000', 'now'))"


@compiles(utc_now, "postgresql")
def _postgres_now(element: utc_now, compiler: Any, **_: Any) -> str:
    return "now()"


@compiles(fresh_id, "sqlite")
def _sqlite_id(element: fresh_id, compiler: Any, **_: Any) -> str:
    parts = "hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || substr(hex(randomblob(2)), 2)"
    return f"(lower({parts} || '-a' || substr(hex(randomblob(2)), 2) || '-' || hex(randomblob(6))))"


@compiles(fresh_id, "postgresql")
def _postgres_id(element: fresh_id, compiler: Any, **_: Any) -> str:
    return "gen_random_uuid()"
