"""How a job fares from day to day: bars of results, and a line of durations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from noonday.control.statistics import Counts, Day

__all__ = ["Bar", "Trend", "trend"]

STEP: Final = 20
WIDE: Final = 14
TALL: Final = 90
_RESULTS: Final = (("completed", "good"), ("failed", "bad"), ("cancelled", "off"), ("skipped", "held"))


@dataclass(frozen=True, slots=True)
class Bar:
    x: int
    y: float
    height: float
    colour: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    width: int
    bars: tuple[Bar, ...]
    most: int  # results of one day
    line: str  # the way of the average duration; empty without one
    dots: tuple[tuple[float, float, str], ...]
    longest: timedelta | None
    days: tuple[tuple[date, Counts, timedelta | None], ...]  # those with something, newest first


def trend(days: Sequence[Day]) -> Trend:
    most = max((sum(_results(day.counts)) for day in days), default=0)
    longest = max((day.average for day in days if day.average), default=None)
    dots = _dots(days, longest)
    return Trend(
        width=max(len(days), 1) * STEP,
        bars=tuple(bar for place, day in enumerate(days) for bar in _bars(place, day, most)),
        most=most,
        line="M" + "L".join(f"{x} {y}" for x, y, _ in dots) if len(dots) > 1 else "",
        dots=dots,
        longest=longest,
        days=tuple((day.day, day.counts, day.average) for day in reversed(days) if any(_results(day.counts))),
    )


def _results(counts: Counts) -> list[int]:
    return [getattr(counts, name) for name, _ in _RESULTS]


def _bars(place: int, day: Day, most: int) -> list[Bar]:
    made, top = [], float(TALL)
    for (name, colour), count in zip(_RESULTS, _results(day.counts), strict=True):
        if count:
            height = max(round(count / most * TALL, 1), 1.5)
            top -= height
            made.append(Bar(place * STEP + 3, round(top, 1), height, colour, f"{day.day}: {count} {name}"))
    return made


def _dots(days: Sequence[Day], longest: timedelta | None) -> tuple[tuple[float, float, str], ...]:
    if not longest:
        return ()
    return tuple(
        (place * STEP + STEP / 2, round(TALL - day.average / longest * (TALL - 8) - 2, 1), str(day.day))
        for place, day in enumerate(days)
        if day.average is not None
    )
