"""The values of a search: words, globs, numbers, times and spans; each read as its field wants it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import Enum, auto
from typing import Final, Literal

__all__ = [
    "Between",
    "Compared",
    "Field",
    "Is",
    "Kind",
    "Like",
    "Missing",
    "Op",
    "Test",
    "Value",
    "Wrong",
    "free_word",
    "read",
]

Op = Literal["<", "<=", ">", ">="]
_MOST_STARS: Final = 10
_OPERATOR = re.compile(r"(<=|>=|<|>)(.*)", re.DOTALL)
_SPAN = re.compile(r"(?:[0-9]{1,9}(?:ms|w|d|h|m|s))+", re.IGNORECASE)
_PARTS = re.compile(r"([0-9]{1,9})(ms|w|d|h|m|s)")
_UNITS: Final = {
    "w": "weeks",
    "d": "days",
    "h": "hours",
    "m": "minutes",
    "s": "seconds",
    "ms": "milliseconds",
}
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_FLAGS: Final = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}
_TURNED: Final[Mapping[Op, Op]] = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
NONE: Final = "none"


class Wrong(Exception):
    """Why a value cannot be meant."""


@dataclass(frozen=True, slots=True)
class Value:
    text: str
    quoted: bool = False  # then every character means itself


class Kind(Enum):
    TEXT = auto()
    CHOICE = auto()
    NUMBER = auto()
    FLAG = auto()
    PAST = auto()  # a time: <2d is less than two days ago
    FUTURE = auto()  # a time: <1h is within the next hour
    SPAN = auto()  # how long something took


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    kind: Kind
    about: str  # for the docs
    choices: tuple[str, ...] = ()
    words: Mapping[str, int] = field(default_factory=dict)  # of a NUMBER: names of some of them
    optional: bool = False  # may be missing, and `none` asks for that


@dataclass(frozen=True, slots=True)
class Is:
    value: str | int | bool


@dataclass(frozen=True, slots=True)
class Like:
    """Text in any case. Between the pieces anything may stand: one piece is the whole text."""

    pieces: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Compared:
    op: Op
    value: int | datetime | timedelta


@dataclass(frozen=True, slots=True)
class Between:
    """From the first on, before the second."""

    first: datetime
    second: datetime


@dataclass(frozen=True, slots=True)
class Missing:
    pass


Test = Is | Like | Compared | Between | Missing


def free_word(value: Value) -> Test:
    """A part of a name."""
    return Like(("", *_glob(value).pieces, ""))


def read(value: Value, field: Field, now: datetime) -> Test:
    if field.optional and not value.quoted and value.text.lower() == NONE:
        return Missing()
    return _READERS[field.kind](value, field, now)


def _glob(value: Value) -> Like:
    pieces = (value.text,) if value.quoted else tuple(value.text.split("*"))
    if len(pieces) > _MOST_STARS + 1:
        raise Wrong(f"has more than {_MOST_STARS} stars")
    return Like(pieces)


def _text(value: Value, field: Field, now: datetime) -> Test:
    return _glob(value)


def _choice(value: Value, field: Field, now: datetime) -> Test:
    word = value.text.lower()
    if word not in field.choices:
        known = (*field.choices, NONE) if field.optional else field.choices
        raise Wrong(f"asks for {value.text[:60]!r}; there are {', '.join(known)}")
    return Is(word)


def _flag(value: Value, field: Field, now: datetime) -> Test:
    found = _FLAGS.get(value.text.lower())
    if found is None:
        raise Wrong("is neither yes nor no")
    return Is(found)


def _number(value: Value, field: Field, now: datetime) -> Test:
    op, text = _operator(value)
    number = field.words.get(text.lower())
    if number is None:
        if not re.fullmatch(r"[0-9]{1,15}", text):
            named = f", or {', '.join(field.words)}" if field.words else ""
            raise Wrong(f"is no number: write 3, <3 or >=3{named}")
        number = int(text)
    return Is(number) if op is None else Compared(op, number)


def _past(value: Value, field: Field, now: datetime) -> Test:
    return _time(value, now, -1)


def _future(value: Value, field: Field, now: datetime) -> Test:
    return _time(value, now, 1)


def _time(value: Value, now: datetime, direction: int) -> Test:
    op, text = _operator(value)
    try:
        if _SPAN.fullmatch(text):
            if op is None:
                raise Wrong(f"compares with nothing: write <{text} or >{text}")
            # Less than two days ago is later than that day.
            return Compared(op if direction > 0 else _TURNED[op], now + direction * _span_of(text))
        if _DAY.fullmatch(text):
            day = datetime.fromisoformat(text).replace(tzinfo=UTC)
            return _day(op, day, day + timedelta(days=1))
        return _instant(op, text)
    except OverflowError:
        raise Wrong("is too far away") from None
    except ValueError:
        raise Wrong("is no time: write <2h, >3d, 2027-01-31 or >=2027-01-31T02:00Z") from None


def _day(op: Op | None, start: datetime, end: datetime) -> Test:
    """A day of UTC as a whole: after it is not within it."""
    match op:
        case None:
            return Between(start, end)
        case "<" | ">=":
            return Compared(op, start)
        case "<=":
            return Compared("<", end)
        case ">":
            return Compared(">=", end)


def _instant(op: Op | None, text: str) -> Test:
    found = datetime.fromisoformat(text)
    found = (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    if op is None:
        raise Wrong(f"compares with nothing: write <{text} or >{text}")
    return Compared(op, found)


def _span(value: Value, field: Field, now: datetime) -> Test:
    op, text = _operator(value)
    if not _SPAN.fullmatch(text):
        raise Wrong("is no span: write <500ms, >30s, >5m or >1h30m")
    if op is None:
        raise Wrong(f"compares with nothing: write <{text} or >{text}")
    try:
        return Compared(op, _span_of(text))
    except OverflowError:
        raise Wrong("is too long") from None


def _span_of(text: str) -> timedelta:
    parts = _PARTS.findall(text.lower())
    return sum((timedelta(**{_UNITS[unit]: int(count)}) for count, unit in parts), timedelta())


def _operator(value: Value) -> tuple[Op | None, str]:
    match = _OPERATOR.fullmatch(value.text)
    if match is None:
        return None, value.text
    op: Op = match[1]  # type: ignore[assignment]  # one of the four
    return op, match[2]


_READERS: Final[Mapping[Kind, Callable[[Value, Field, datetime], Test]]] = {
    Kind.TEXT: _text,
    Kind.CHOICE: _choice,
    Kind.NUMBER: _number,
    Kind.FLAG: _flag,
    Kind.PAST: _past,
    Kind.FUTURE: _future,
    Kind.SPAN: _span,
}
