"""One grammar for all lists: `status:failed,paused tag:nightly -tag:old next:<1h "free words"`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from typing import Final

from noonday.domain.errors import Invalid, Problem
from noonday.domain.search_values import Field, Test, Value, Wrong, free_word, read

__all__ = ["FREE", "LONGEST", "Searchable", "Term", "parse"]

FREE: Final = ""  # the field of a word that names none
LONGEST: Final = 1000  # characters
_MOST_TERMS: Final = 50
_MOST_VALUES: Final = 50
_SHOWN: Final = 60

_SPACE = re.compile(r"\s*")
_NAME = re.compile(r'([^\s",:]*):')
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_BARE = re.compile(r'[^\s",]*')
_WORD = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*"?)*', re.DOTALL)  # as people see it, for messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Searchable:
    """What can be asked of a list. A free word is looked for in its names."""

    fields: Mapping[str, Field]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def named(self, name: str) -> str | None:
        found = self.aliases.get(name.lower(), name.lower())
        return found if found in self.fields else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One condition: any of the tests holds for the field; or, negated, none of them does."""

    field: str
    tests: tuple[Test, ...]
    negated: bool = False


def parse(text: str, searchable: Searchable, now: datetime, called: str = "q") -> tuple[Term, ...]:
    """The conditions, all of which must hold; `called` is what the caller names this text in an error."""
    try:
        return tuple(_terms(text, searchable, now))
    except _Refused as exc:
        raise Invalid(Problem(called, str(exc))) from None


class _Refused(Exception):
    """Names the word and its place."""

    def __init__(self, text: str, place: int, why: str) -> None:
        found = _WORD.match(text, place)
        word = found[0] if found else ""
        shown = word if len(word) <= _SHOWN else word[: _SHOWN - 3] + "..."
        super().__init__(f"{shown!r} at character {place + 1} {why}")


def _terms(text: str, searchable: Searchable, now: datetime) -> Iterator[Term]:
    if len(text) > LONGEST:
        raise _Refused(text, 0, f"begins a text of more than {LONGEST} characters")
    for place, char in enumerate(text):
        if not char.isprintable() and not char.isspace():
            raise _Refused(text, place, "is a character that cannot be seen")
    place = _after_space(text, 0)
    for _ in range(_MOST_TERMS):
        if place == len(text):
            return
        term, place = _term(text, place, searchable, now)
        yield term
        place = _after_space(text, place)
    if place < len(text):
        raise _Refused(text, place, f"is one word too many: at most {_MOST_TERMS}")


def _term(text: str, start: int, searchable: Searchable, now: datetime) -> tuple[Term, int]:
    negated = text[start] == "-"
    place = start + negated
    name = FREE
    if found := _NAME.match(text, place):
        known = searchable.named(found[1])
        if known is None:
            raise _Refused(text, start, _unknown(found[1], searchable))
        name, place = known, found.end()
    tests: list[Test] = []
    while True:
        value, place = _value(text, place, start)
        try:
            tests.append(read(value, searchable.fields[name], now) if name else free_word(value))
        except Wrong as exc:
            raise _Refused(text, start, str(exc)) from None
        if len(tests) > _MOST_VALUES:
            raise _Refused(text, start, f"has more than {_MOST_VALUES} values")
        if not text.startswith(",", place):
            return Term(field=name, tests=tuple(tests), negated=negated), place
        place += 1


def _value(text: str, place: int, start: int) -> tuple[Value, int]:
    if text.startswith('"', place):
        quoted = _QUOTED.match(text, place)
        if quoted is None:
            raise _Refused(text, place, "opens a quote that is never closed")
        end = quoted.end()
        if end < len(text) and not (text[end].isspace() or text[end] == ","):
            raise _Refused(text, start, "goes on after the closing quote: put a space between")
        value = Value(re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL), quoted=True)
    else:
        bare = _BARE.match(text, place)
        assert bare is not None
        end = bare.end()
        if text.startswith('"', end) and end > place:
            raise _Refused(text, start, "has a quote in the middle: put all of the value into quotes")
        value = Value(bare[0])
    if not value.text.strip():
        raise _Refused(text, start, "has no value")
    return value, end


def _after_space(text: str, place: int) -> int:
    found = _SPACE.match(text, place)
    assert found is not None
    return found.end()


def _unknown(name: str, searchable: Searchable) -> str:
    known = sorted(searchable.fields)
    near = get_close_matches(name.lower()[:50], [*known, *searchable.aliases], n=1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
    return f"names no field ({hint}); a word with a colon goes into quotes"
