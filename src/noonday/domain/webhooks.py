"""Webhook paths and the patterns that jobs wait for: `*` is one segment, `**` any number of them, even none.

Patterns stand in a tree, and a path walks down all branches that fit at once: nothing is tried twice, however
the patterns are made.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final, Generic, TypeVar

from noonday.domain.errors import invalid

MOST_CHARS: Final = 512
MOST_SEGMENTS: Final = 64
ONE: Final = "*"
MANY: Final = "**"

T = TypeVar("T")


def path_of(text: str, field: str = "path") -> str:
    """The one way to write a path: a slash before each segment, none at the end; Invalid for what is none."""
    return _joined(_segments(text, field))


def pattern_of(text: str, field: str = "pattern") -> str:
    """As `path_of`, for a pattern."""
    segments = _segments(text, field)
    for segment in segments:
        if "*" in segment and segment not in (ONE, MANY):
            raise invalid(field, text, f"has a * within {segment!r}; * and ** stand for whole segments")
    return _joined(segments)


def _segments(text: str, field: str) -> list[str]:
    if len(text) > MOST_CHARS:
        raise invalid(field, text, f"is longer than {MOST_CHARS} characters")
    if not text.isprintable():
        raise invalid(field, text, "holds characters that cannot be seen")
    found = [segment for segment in unicodedata.normalize("NFC", text).strip().split("/") if segment]
    if len(found) > MOST_SEGMENTS:
        raise invalid(field, text, f"has more than {MOST_SEGMENTS} segments")
    if "." in found or ".." in found:
        raise invalid(field, text, "must not hold the segments . and ..")
    return found


def _joined(segments: Iterable[str]) -> str:
    return "/" + "/".join(segments)


class Patterns(Generic[T]):
    """Patterns, each with what it stands for; several may be equal."""

    def __init__(self, entries: Iterable[tuple[str, T]] = ()) -> None:
        self._root: _Node[T] = _Node()
        for pattern, value in entries:
            node = self._root
            for segment in _segments(pattern, "pattern"):
                node = node.below(segment)
            node.values.append(value)

    def match(self, path: str) -> list[T]:
        """What each fitting pattern stands for, once."""
        here = _reached([self._root])
        for segment in _segments(path, "path"):
            here = _reached(following for node in here for following in node.after(segment))
        return [value for node in here for value in node.values]


class _Node(Generic[T]):
    __slots__ = ("literal", "many", "one", "repeats", "values")

    def __init__(self, *, repeats: bool = False) -> None:
        self.repeats = repeats  # it stands for **, and any segment leads back to it
        self.literal: dict[str, _Node[T]] = {}
        self.one: _Node[T] | None = None
        self.many: _Node[T] | None = None
        self.values: list[T] = []

    def below(self, segment: str) -> _Node[T]:
        """The node that this segment of a pattern leads to, made if need be."""
        if segment == ONE:
            self.one = self.one or _Node()
            return self.one
        if segment == MANY:
            self.many = self.many or _Node(repeats=True)
            return self.many
        return self.literal.setdefault(segment, _Node())

    def after(self, segment: str) -> Iterator[_Node[T]]:
        """The nodes that this segment of a path leads to."""
        if self.repeats:
            yield self
        if self.one is not None:
            yield self.one
        if segment in self.literal:
            yield self.literal[segment]


def _reached(nodes: Iterable[_Node[T]]) -> list[_Node[T]]:
    """These nodes, each once, and those behind a ** that may stand for nothing."""
    found: dict[int, _Node[T]] = {}
    for start in nodes:
        node: _Node[T] | None = start
        while node is not None and id(node) not in found:
            found[id(node)] = node
            node = node.many
    return list(found.values())
