"""Jobs that wait for each other, as a picture: each job right of those before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from urllib.parse import quote

from noonday.control.insights import Edge, Neighbourhood
from noonday.domain.job import JobId
from noonday.web import words

__all__ = ["Box", "Line", "Picture", "picture"]

WIDE: Final = 200
TALL: Final = 48
_ACROSS: Final = 72  # between columns, where the lines are
_DOWN: Final = 16
_LINE: Final = 2  # of a line that passes a column
_EDGE: Final = 8
_HEAD: Final = 7  # of an arrow
_LETTERS: Final = 22
_START: Final = 12  # letters of a long name before those that are left out
_SWEEPS: Final = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    x: int
    y: int
    name: str
    short: str
    address: str | None  # of what the reader may see
    state: str
    icon: str
    here: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    path: str
    kind: str
    head: str  # the arrow's triangle


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    width: int
    height: int
    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]


def picture(found: Neighbourhood) -> Picture:
    ways = _ways(found)
    columns = _ordered(ways, _name_of(found))
    heights = [sum(_height(one) + _DOWN for one in column) - _DOWN for column in columns]
    tallest = max(heights)
    places: dict[Stop, tuple[int, int]] = {}
    for number, column in enumerate(columns):
        y = _EDGE + (tallest - heights[number]) // 2
        for one in column:
            places[one] = (_EDGE + number * (WIDE + _ACROSS), y)
            y += _height(one) + _DOWN
    return Picture(
        width=_EDGE * 2 + len(columns) * (WIDE + _ACROSS) - _ACROSS,
        height=_EDGE * 2 + tallest,
        boxes=tuple(_box(found, one, *place) for one, place in places.items() if not isinstance(one, _Pass)),
        lines=tuple(_line(edge.kind, [places[one] for one in way], way) for edge, way in ways.items()),
    )


@dataclass(frozen=True, slots=True)
class _Pass:
    """Where a line passes a column on its way to a later one, so that it crosses no box."""

    edge: Edge
    column: int


Stop = JobId | _Pass


def _height(one: Stop) -> int:
    return _LINE if isinstance(one, _Pass) else TALL


def _ways(found: Neighbourhood) -> dict[Edge, list[Stop]]:
    """Of each edge the stops, one in each column from its parent's to its child's."""
    depth = _depths(found)
    return {
        edge: [
            edge.parent,
            *(_Pass(edge, column) for column in range(depth[edge.parent] + 1, depth[edge.child])),
            edge.child,
        ]
        for edge in found.edges
    }


def _depths(found: Neighbourhood) -> dict[JobId, int]:
    """Each job one column right of the last one before it."""
    parents: dict[JobId, set[JobId]] = defaultdict(set)
    for edge in found.edges:
        parents[edge.child].add(edge.parent)
    depth = dict.fromkeys({*parents, *(edge.parent for edge in found.edges)}, 0)
    for _ in depth:  # as often as the longest way may be; circles are refused when a job is saved
        for child, above in parents.items():
            depth[child] = min(max(depth[child], *(depth[one] + 1 for one in above)), len(depth))
    return depth


def _ordered(ways: Mapping[Edge, Sequence[Stop]], name: Callable[[Stop], str]) -> list[list[Stop]]:
    """The columns, each stop near to what it is joined with, so that few lines cross."""
    left: dict[Stop, list[Stop]] = defaultdict(list)
    right: dict[Stop, list[Stop]] = defaultdict(list)
    for way in ways.values():
        for one, other in pairwise(way):
            right[one].append(other)
            left[other].append(one)
    columns: list[list[Stop]] = []
    waiting = sorted({*left, *right}, key=name)
    while waiting:  # a column is what has nothing left of it but the columns before
        placed = {one for column in columns for one in column}
        columns.append([one for one in waiting if placed.issuperset(left[one])])
        waiting = [one for one in waiting if one not in placed and one not in columns[-1]]
    for sweep in range(_SWEEPS):
        joined, order = (left, columns) if sweep % 2 == 0 else (right, columns[::-1])
        for before, column in pairwise(order):
            column[:] = _near(column, before, joined)
    return columns


def _near(
    column: Sequence[Stop], before: Sequence[Stop], joined: Mapping[Stop, Sequence[Stop]]
) -> list[Stop]:
    """In the order of the middles of what each is joined with; who is joined with nothing stays."""
    rows = {one: (row + 0.5) / len(before) for row, one in enumerate(before)}

    def middle(placed: tuple[int, Stop]) -> float:
        row, one = placed
        found = [rows[other] for other in joined[one]]
        return sum(found) / len(found) if found else (row + 0.5) / len(column)

    return [one for _, one in sorted(enumerate(column), key=middle)]


def _name_of(found: Neighbourhood) -> Callable[[Stop], str]:
    return lambda one: _name(found, one.edge.child if isinstance(one, _Pass) else one)


def _name(found: Neighbourhood, job_id: JobId) -> str:
    known = found.known.get(job_id)
    return known.name if known else "a job of somebody else"


def _box(found: Neighbourhood, job_id: JobId, x: int, y: int) -> Box:
    known = found.known.get(job_id)
    name = _name(found, job_id)
    icon, word = words.STATES.get(known.state if known else "", ("off", ""))
    return Box(
        x=x,
        y=y,
        name=name,
        short=name if len(name) <= _LETTERS else f"{name[:_START]}…{name[_START + 1 - _LETTERS :]}",
        address=f"/ui/jobs/{quote(name, safe='')}/dependencies" if known else None,
        state=word,
        icon=icon,
        here=job_id == found.job.id,
    )


def _line(kind: str, places: Sequence[tuple[int, int]], way: Sequence[Stop]) -> Line:
    middles = [(x, y + _height(one) // 2) for one, (x, y) in zip(way, places, strict=True)]
    drawn = [f"M{middles[0][0] + WIDE} {middles[0][1]}"]
    for (x1, y1), (x2, y2) in pairwise(middles):
        start, end = x1 + WIDE, x2 - _HEAD if (x2, y2) == middles[-1] else x2
        middle = (start + x2) // 2
        drawn.append(f"H{start}C{middle} {y1} {middle} {y2} {end} {y2}")
    x, y = middles[-1]
    return Line(path="".join(drawn), kind=kind, head=f"M{x - _HEAD} {y - 5}l8 5l-8 5z")


def neighbours_of(found: Neighbourhood) -> Iterator[tuple[str, str, str]]:
    """The lines of the picture in words: who, how, whom."""
    for edge in found.edges:
        how = "waits for" if edge.kind == "depends_on" else "runs after each success of"
        yield _name(found, edge.child), how, _name(found, edge.parent)
