"""The conditions of a search as SQL; which columns a field means is said in `search_sources`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, assert_never

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    and_,
    false,
    func,
    literal,
    not_,
    or_,
    select,
    true,
)

from noonday.domain.search_values import Between, Compared, Is, Like, Missing, Test
from noonday.domain.searching import Term
from noonday.store import dialects
from noonday.store.tables import executions, jobs

Source = Callable[[Connection, Test], ColumnElement[bool]]
Sources = Mapping[str, Source]
_ESCAPE: Final = "/"
_MILLISECOND: Final = timedelta(milliseconds=1)


def conditions(conn: Connection, terms: Iterable[Term], sources: Sources) -> list[ColumnElement[bool]]:
    """One for each term. What is not known does not hold, so that its negation does."""
    made = []
    for term in terms:
        held = or_(*(sources[term.field](conn, test) for test in term.tests))
        made.append(not_(func.coalesce(held, false())) if term.negated else held)
    return made


def column(found: ColumnElement[Any] | Callable[[Connection], ColumnElement[Any]]) -> Source:
    def source(conn: Connection, test: Test) -> ColumnElement[bool]:
        return tested(found if isinstance(found, ColumnElement) else found(conn), test)

    return source


def any_of(*sources: Source) -> Source:
    return lambda conn, test: or_(*(source(conn, test) for source in sources))


def items(found: ColumnElement[Any]) -> Source:
    """Of a JSON list: does any of its texts pass? Missing is a list without any."""

    def source(conn: Connection, test: Test) -> ColumnElement[bool]:
        if isinstance(test, Missing):
            return not_(dialects.of(conn).any_item(found, lambda _: true()))
        return dialects.of(conn).any_item(found, lambda item: tested(item, test))

    return source


def span(first: ColumnElement[Any], last: ColumnElement[Any]) -> Source:
    """How many milliseconds it is from one column to the other."""
    # Rounded: SQLite counts in fractions of a day, so that 38 seconds are not quite 38.
    return column(lambda conn: func.round(dialects.of(conn).seconds_between(first, last) * 1000))


def of_its_job(source: Source) -> Source:
    """Of an execution: what its job passes. Asked of each one, for there may be far more jobs than those."""

    def asked(conn: Connection, test: Test) -> ColumnElement[bool]:
        its_job = select(jobs.c.id).where(jobs.c.id == executions.c.job_id, source(conn, test))
        return its_job.correlate(executions).exists()

    return asked


def tested(found: ColumnElement[Any], test: Test) -> ColumnElement[bool]:
    match test:
        case Is(value):
            return found == _bound(value)
        case Like(pieces):
            return _like(found, pieces)
        case Compared(op, value):
            than = _bound(value)
            return {"<": found < than, "<=": found <= than, ">": found > than, ">=": found >= than}[op]
        case Between(first, second):
            return and_(found >= first, found < second)
        case Missing():
            return found.is_(None)
        case _:
            assert_never(test)


def _bound(value: object) -> object:
    if isinstance(value, timedelta):
        return value / _MILLISECOND
    if isinstance(value, int) and not isinstance(value, bool):
        return literal(value, BigInteger)  # it may be beyond what the column can hold
    return value


def _like(found: ColumnElement[Any], pieces: tuple[str, ...]) -> ColumnElement[bool]:
    # Both sides are folded by the database: what it takes for a capital is not what Python does.
    folded = func.lower(found)
    if len(pieces) == 1:
        return folded == func.lower(literal(pieces[0]))
    pattern = "%".join(_escaped(piece) for piece in pieces)
    return folded.like(func.lower(literal(pattern)), escape=_ESCAPE)


def _escaped(text: str) -> str:
    for char in (_ESCAPE, "%", "_"):
        text = text.replace(char, _ESCAPE + char)
    return text
