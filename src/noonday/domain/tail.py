"""Numbered rows in their order, though transactions beside each other commit out of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

T = TypeVar("T")

_MOST_MISSING: Final = 200


@dataclass(slots=True)
class Tail(Generic[T]):
    """Gives out rows behind `head` in order. A number that is missing may still be committed: what comes
    after it waits for `patience` seconds. What turns up later than that, within `memory`, is given as late.
    """

    head: int
    number: Callable[[T], int]
    patience: float = 1.0
    memory: float = 60.0
    _seen: dict[int, float] = field(default_factory=dict)  # behind a gap: since when
    _missing: dict[int, float] = field(default_factory=dict)  # given up: when

    @property
    def waiting(self) -> bool:
        return bool(self._seen)

    @property
    def missing(self) -> frozenset[int]:
        """Numbers to look for beside all behind `head`."""
        return frozenset(self._missing)

    def take(self, rows: Sequence[T], now: float) -> tuple[list[T], list[T]]:
        """`rows` in order of their numbers; returns those that are next, and those that are late."""
        late = [row for row in rows if self._missing.pop(self.number(row), None) is not None]
        new = [row for row in rows if self.number(row) > self.head]
        since = self._known_since(new, now)
        ready: list[T] = []
        for row in new:
            place = self.number(row)
            if place > self.head + 1 and now - since[place] < self.patience:
                break
            self._give_up(range(self.head + 1, place), now)
            ready.append(row)
            self.head = place
        self._forget(now)
        return ready, late

    def skip_to(self, head: int) -> None:
        """Go on behind this number, whatever was before."""
        self.head = max(self.head, head)
        self._forget(float("-inf"))

    def _known_since(self, rows: Sequence[T], now: float) -> dict[int, float]:
        """For how long a gap before each row is known: since that row, or one behind it, was first seen."""
        known: dict[int, float] = {}
        first = now
        for place in map(self.number, reversed(rows)):
            first = known[place] = min(first, self._seen.setdefault(place, now))
        return known

    def _give_up(self, places: range, now: float) -> None:
        for place in places[-_MOST_MISSING:]:
            self._missing[place] = now

    def _forget(self, now: float) -> None:
        self._seen = {place: since for place, since in self._seen.items() if place > self.head}
        kept = [(place, at) for place, at in self._missing.items() if now - at < self.memory]
        self._missing = dict(kept[-_MOST_MISSING:])
