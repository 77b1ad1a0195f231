"""Time series as plain numbers: what happens is noted, counted by the hundred, and shown at the scrape."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]
OTHER: Final = "other"
_LONGEST = 200  # characters of a label's value
_MOST_NOTES: Final = 500

T = TypeVar("T")


class Bounded:
    """The values that one label may take: the first so many, and `other` for all that come after them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[str, str] = {"": ""}

    def __call__(self, value: str | None) -> str:
        found = self._known.get(value or "")
        if found is not None:
            return found
        assert value is not None
        if len(self._known) > self._most:  # the empty one is not counted
            return OTHER
        return self._known.setdefault(value, value[:_LONGEST])


class Notes(Generic[T]):
    """What is yet to be counted, noted from any thread: a note costs an append, and a lock is for many."""

    def __init__(self, count: Callable[[list[T]], None]) -> None:
        self._count = count
        self._notes: deque[T] = deque()
        self._lock = threading.Lock()

    def add(self, note: T) -> None:
        self._notes.append(note)
        if len(self._notes) >= _MOST_NOTES:
            self.count()

    def count(self) -> None:
        """All of them, before somebody looks; when this returns no earlier note waits."""
        with self._lock:
            notes = self._notes
            self._count([notes.popleft() for _ in range(len(notes))])


class Tally:
    """Only grows. `known` labels are there from the start, so that a rate sees their first step."""

    def __init__(self, name: str, text: str, labels: Labels = (), known: Iterable[Labels] = ()) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._lock = threading.Lock()
        self._counts: dict[Labels, int] = dict.fromkeys(known if labels else [()], 0)

    def add(self, labels: Labels = (), count: int = 1) -> None:
        with self._lock:
            self._counts[labels] = self._counts.get(labels, 0) + count

    def family(self) -> CounterMetricFamily:
        made = CounterMetricFamily(self._name, self._text, labels=self._labels)
        for labels, count in self._counts.copy().items():
            made.add_metric(labels, count)
        return made


class Level:
    """Goes up and down."""

    def __init__(self, name: str, text: str, labels: Labels = ()) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._values: dict[Labels, float] = {}

    def set(self, labels: Labels, value: float) -> None:
        self._values[labels] = value

    def family(self) -> GaugeMetricFamily:
        made = GaugeMetricFamily(self._name, self._text, labels=self._labels)
        for labels, value in self._values.copy().items():
            made.add_metric(labels, value)
        return made


class Spread:
    """How values are spread over buckets: a histogram."""

    def __init__(
        self, name: str, text: str, labels: Labels, bounds: Sequence[float], known: Iterable[Labels] = ()
    ) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._bounds = tuple(bounds)
        self._words = [*map(floatToGoString, bounds), "+Inf"]
        self._lock = threading.Lock()
        self._cells: dict[Labels, list[float]] = {made: self._cell() for made in known}

    def _cell(self) -> list[float]:
        """A count for each bucket, and the sum at the end."""
        return [0.0] * (len(self._bounds) + 2)

    def add(self, labels: Labels, values: Iterable[float]) -> None:
        with self._lock:
            cell = self._cells.get(labels)
            if cell is None:
                cell = self._cells[labels] = self._cell()
            bounds = self._bounds
            for value in values:
                cell[bisect_left(bounds, value)] += 1
                cell[-1] += value

    def family(self) -> HistogramMetricFamily:
        made = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        with self._lock:
            cells = {labels: cell.copy() for labels, cell in self._cells.items()}
        for labels, cell in cells.items():
            total, buckets = 0.0, []
            for word, count in zip(self._words, cell, strict=False):
                total += count
                buckets.append((word, total))
            made.add_metric(labels, buckets, cell[-1])
        return made
