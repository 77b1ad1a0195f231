"""Lines of time as SVG: the marks of a track as a few paths, and the ticks of the axis."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from noonday.control.timeline import Drawn
from noonday.domain.execution import ExecutionState
from noonday.domain.timeline import PLANNED, Line, Mark
from noonday.web.words import STATES

__all__ = ["HIGH", "WIDE", "WORDS", "Tick", "data_of", "paths", "share", "summary", "ticks"]

WIDE: Final = 1000
HIGH: Final = 24
_NARROWEST: Final = 2.0
# The part of its row that a mark fills, from the top: shapes that differ without their colours.
_TALL: Final[Mapping[str, tuple[float, float]]] = {
    "good": (0.15, 0.85),
    "running": (0.15, 0.85),
    "bad": (0.0, 1.0),
    "off": (0.35, 0.65),
    "held": (0.7, 1.0),
    "waiting": (0.25, 0.75),
    PLANNED: (0.25, 0.75),
}
_LOOKS: Final = {PLANNED: PLANNED, **{state.value: STATES[state][0] for state in ExecutionState}}
_STATES: Final = tuple(_LOOKS)
WORDS: Final = (PLANNED, *(STATES[state][1] for state in ExecutionState))
_STEPS: Final = tuple(
    (timedelta(hours=hours), timedelta(minutes=minutes))
    for hours, minutes in ((1, 10), (3, 30), (6, 60), (12, 120), (24, 180), (72, 720), (168, 1440))
)


@dataclass(frozen=True, slots=True)
class Tick:
    at: datetime
    share: float
    text: str
    day: bool  # midnight in the reader's zone


def share(at: datetime, since: datetime, until: datetime) -> float:
    """0..1 of the span."""
    return (at - since) / (until - since)


def paths(line: Line, since: datetime, until: datetime) -> dict[str, str]:
    """For each look of a mark the path of all that have it; `late` are the ways from due to start."""
    made: dict[str, list[str]] = {}
    tall, unit = HIGH / line.rows, WIDE / (until - since).total_seconds()
    shapes = {(look, row): _shape(look, row, tall) for look in _TALL for row in range(line.rows)}
    for mark in line.marks:
        look = _LOOKS[mark.state]
        left = max((mark.start - since).total_seconds() * unit, 0.0)
        right = min((mark.end - since).total_seconds() * unit, WIDE)
        top, height = shapes[look, mark.row]
        width = max(right - left, _NARROWEST)
        made.setdefault(look, []).append(f"M{left:.1f} {top}h{width:.1f}v{height}h-{width:.1f}z")
        if mark.late:
            due = max((mark.due - since).total_seconds() * unit, 0.0)
            middle = tall * (mark.row + 0.5)
            made.setdefault("late", []).append(
                f"M{due:.1f} {middle - 4:.1f}v8M{due:.1f} {middle:.1f}H{left:.1f}"
            )
    return {look: "".join(parts) for look, parts in made.items()}


def _shape(look: str, row: int, tall: float) -> tuple[str, str]:
    """The top of a mark, and its height."""
    top, bottom = _TALL[look]
    return f"{tall * (row + top):.1f}", f"{tall * (bottom - top):.1f}"


def data_of(tracks: Iterable[Drawn], since: datetime) -> list[list[list[Any]]]:
    """What a pointer or a key can find on each track: seconds from `since`, how long, the place of its state
    in WORDS, id, count, lateness. What is nothing at the end is left out: most are planned, and single."""
    return [[_datum(mark, since) for mark in drawn.line.marks] for drawn in tracks]


def _datum(mark: Mark, since: datetime) -> list[Any]:
    start = round((mark.start - since).total_seconds())
    span = round((mark.end - mark.start).total_seconds())
    if mark.state == PLANNED and mark.count == 1:
        return [start, span] if span else [start]
    made = [start, span, _STATES.index(mark.state), mark.id]
    if mark.late:
        return [*made, mark.count, round(mark.lateness.total_seconds())]
    return [*made, mark.count] if mark.count > 1 else made


def summary(line: Line) -> str:
    """A track in words, for those who do not see it."""
    parts = [f"{count:,} {state}" for state, count in sorted(line.counts.items())]
    parts += [f"{line.late} late"] if line.late else []
    parts += [f"{line.overlaps} overlapping"] if line.overlaps else []
    return ", ".join(parts) or "nothing"


def ticks(since: datetime, until: datetime, zone: ZoneInfo) -> list[Tick]:
    step = next((step for span, step in _STEPS if until - since <= span), timedelta(days=1))
    return [_tick(at, since, until, zone) for at in _times(since, until, step, zone)]


def _times(since: datetime, until: datetime, step: timedelta, zone: ZoneInfo) -> Iterator[datetime]:
    """Counted from midnight of each day: a day of 23 or 25 hours has no tick at a strange time."""
    day = since.astimezone(zone).date()
    while True:
        midnight = datetime.combine(day, time(), zone).astimezone(UTC)
        if midnight > until:
            return
        day += timedelta(days=1)
        end = datetime.combine(day, time(), zone).astimezone(UTC)
        at = midnight
        while at < end:
            if since <= at <= until:
                yield at
            at += step


def _tick(at: datetime, since: datetime, until: datetime, zone: ZoneInfo) -> Tick:
    there = at.astimezone(zone)
    midnight = there.time() == time()
    text = f"{there:%a} {there.day} {there:%b}" if midnight else f"{there:%H:%M}"
    return Tick(at, share(at, since, until), text, midnight)
