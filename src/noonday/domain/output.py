"""What an attempt writes while it runs: where each piece stands, and how much of it is kept."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import Final

__all__ = ["HEAD", "LONGEST", "TAIL", "Flow", "Piece", "plain"]

HEAD: Final = 256 * 1024  # characters from the beginning that are always kept
TAIL: Final = 1024 * 1024  # and from the end; what lies between goes
LONGEST: Final = 64 * 1024  # of one piece
_SMALL: Final = 4 * 1024  # pieces are joined up to this length while they wait
_WAITING: Final = TAIL  # characters behind the head that may wait to be written
# What only a terminal understands: colours, moves of its cursor, titles of its window; and controls.
_CODES: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])|[\x00-\x08\x0b-\x1f\x7f]"
)


def plain(text: str) -> str:
    """For readers without a terminal; of a line that was written over, what is left at the end."""
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _CODES.sub("", "\n".join(lines))


@dataclass(frozen=True, slots=True)
class Piece:
    """`place` and `line` count the characters and the line ends before it, those that were left out too."""

    place: int
    line: int
    text: str

    @property
    def end(self) -> int:
        return self.place + len(self.text)


@dataclass(slots=True)
class Flow:
    """Gathers what is written until somebody takes it; a flood loses its middle, never its numbers."""

    place: int = 0
    line: int = 0
    _head: list[Piece] = field(default_factory=list)
    _rest: deque[Piece] = field(default_factory=deque)
    _size: int = 0  # of the rest
    _sealed: int = 0  # what stands before it was taken once: it may be stored already, and grows no more

    def __bool__(self) -> bool:
        return bool(self._head or self._rest)

    def add(self, text: str) -> None:
        begin = 0
        while begin < len(text):
            room = min(LONGEST, HEAD - self.place) if self.place < HEAD else LONGEST
            self._put(text[begin : begin + room])
            begin += room
        self._bound()

    def take(self) -> list[Piece]:
        """In order; each within the head or behind it, and none longer than LONGEST."""
        taken = [*self._head, *self._rest]
        self._head.clear()
        self._rest.clear()
        self._size = 0
        self._sealed = self.place
        return taken

    def put_back(self, pieces: list[Piece]) -> None:
        """They could not be written, and stand before what came since."""
        self._head[:0] = [piece for piece in pieces if piece.place < HEAD]
        rest = [piece for piece in pieces if piece.place >= HEAD]
        self._rest.extendleft(reversed(rest))
        self._size += sum(len(piece.text) for piece in rest)
        self._bound()

    def _put(self, text: str) -> None:
        waiting: list[Piece] | deque[Piece] = self._head if self.place < HEAD else self._rest
        last = waiting[-1] if waiting else None
        if last is not None and last.place >= self._sealed and len(last.text) + len(text) <= _SMALL:
            waiting[-1] = Piece(last.place, last.line, last.text + text)
        else:
            waiting.append(Piece(self.place, self.line, text))
        if self.place >= HEAD:
            self._size += len(text)
        self.place += len(text)
        self.line += text.count("\n")

    def _bound(self) -> None:
        while self._size > _WAITING:
            self._size -= len(self._rest.popleft().text)
