"""How the figures of `noonday bench` are told: a line while they are taken, a table with what they mean."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from noonday.cli import tables
from noonday.cli.benching.measures import Burst, Commit, Drain, Steady
from noonday.cli.benching.places import Place

__all__ = ["Figures", "as_json", "progress", "tell"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    slots: int
    commit: Commit
    drain: Drain
    steady: Steady
    burst: Burst
    peak_memory_mb: float | None


def as_json(place: Place, figures: Figures) -> dict[str, Any]:
    return {"database": place.words, "road": _road(place), **asdict(figures)}


def tell(place: Place, figures: Figures) -> None:
    words = f"{place.words}; {_road(place)} road, {figures.slots} slots, one process"
    tables.title(f"Measured on {words}")
    tables.table(["measure", "#figure", "unit", "what it means"], _rows(figures))


def _road(place: Place) -> str:
    return "database" if place.redis is None else "streams"


def _rows(figures: Figures) -> Iterator[tuple[str, str, str, str]]:
    commit, drain, steady, burst = figures.commit, figures.drain, figures.steady, figures.burst
    yield "one commit", f"{commit.median_ms:.2f}", "ms", "one row made durable, there and back: the median"
    yield "", f"{commit.p99_ms:.2f}", "ms", "of a hundred, 99 were as fast or faster"
    yield (
        "drain",
        f"{drain.per_second:,.0f}",
        "runs/s",
        f"{drain.runs:,} runs that waited, from the first start to the durable end of all",
    )
    yield "", f"{drain.cpu_us:,.0f}", "µs", "processor time of this process for each of them"
    yield from _punctuality(steady)
    yield (
        f"burst of {burst.runs:,}",
        f"{burst.last_started_s:.2f}",
        "s",
        "from the one moment at which all were due until the last had started",
    )
    yield "", f"{burst.durable_s:.2f}", "s", "until the ends of all were durable"
    if figures.peak_memory_mb is not None:
        yield "memory", f"{figures.peak_memory_mb:,.0f}", "MB", "the most that this process has had"


def _punctuality(steady: Steady) -> Iterator[tuple[str, str, str, str]]:
    name = f"late at {steady.rate:,}/s"
    if steady.p50_ms is None or steady.p99_ms is None or steady.max_ms is None:
        yield name, "-", "ms", "nothing fired"
        return
    yield name, f"{steady.p50_ms:.1f}", "ms", "from due to started, half were as punctual or more"
    yield "", f"{steady.p99_ms:.1f}", "ms", "99 of a hundred"
    yield "", f"{steady.max_ms:.1f}", "ms", "the latest of all"
    if steady.stalls.p99_ms is not None:
        yield "", f"{steady.stalls.p99_ms:.1f}", "ms", "how late a bare timer was meanwhile, 99 of a hundred"
        yield "", f"{steady.stalls.max_ms:.1f}", "ms", "and at its worst: the machine's own part"
    early = f"{steady.early:,} started early" if steady.early else "none started early"
    yield "", f"{steady.fired / steady.due:.1%}", "fired", f"{steady.fired:,} of {steady.due:,}, {early}"


@contextmanager
def progress() -> Iterator[Progress]:
    line = Progress()
    try:
        yield line
    finally:
        line.show("")


class Progress:
    """One line on a terminal that tells what goes on; where nobody watches, nothing."""

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._watched = self._stream.isatty()

    def show(self, words: str) -> None:
        if self._watched:
            self._stream.write(f"\r\x1b[K{words}")
            self._stream.flush()
