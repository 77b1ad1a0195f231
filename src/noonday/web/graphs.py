"""Jobs that wait for each other, as a picture: each job right of those before it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from noonday.control.insights import Edge, Neighbourhood
from noonday.domain.job import JobId
from noonday.web import words

__all__ = ["Box", "Line", "Picture", "picture"]

WIDE: Final = 190
TALL: Final = 48
_ACROSS: Final = 70  # between columns, where the lines are
_DOWN: Final = 18
_EDGE: Final = 8
_LETTERS: Final = 22


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
    columns = _columns(found)
    tallest = max(len(ids) for ids in columns)
    places: dict[JobId, tuple[int, int]] = {}
    for column, ids in enumerate(columns):
        above = (tallest - len(ids)) * (TALL + _DOWN) // 2
        for row, job_id in enumerate(ids):
            places[job_id] = (_EDGE + column * (WIDE + _ACROSS), _EDGE + above + row * (TALL + _DOWN))
    return Picture(
        width=_EDGE * 2 + len(columns) * (WIDE + _ACROSS) - _ACROSS,
        height=_EDGE * 2 + tallest * (TALL + _DOWN) - _DOWN,
        boxes=tuple(_box(found, job_id, *place) for job_id, place in places.items()),
        lines=tuple(_line(edge, places) for edge in found.edges),
    )


def _columns(found: Neighbourhood) -> list[list[JobId]]:
    """Each job one column right of the last one before it; in a column by where its parents stand."""
    parents: dict[JobId, set[JobId]] = defaultdict(set)
    for edge in found.edges:
        parents[edge.child].add(edge.parent)
    ids = {found.job.id, *parents, *(edge.parent for edge in found.edges)}
    depth = dict.fromkeys(ids, 0)
    for _ in ids:  # as often as the longest way may be; circles are refused when a job is saved
        for child, above in parents.items():
            depth[child] = min(max(depth[child], *(depth[one] + 1 for one in above)), len(ids))
    used = sorted(set(depth.values()))
    columns: list[list[JobId]] = []
    rows: dict[JobId, int] = {}
    for number in used:
        here = [job_id for job_id in ids if depth[job_id] == number]
        here.sort(key=lambda one: (_mean(parents[one], rows), _name(found, one)))
        rows |= {job_id: row for row, job_id in enumerate(here)}
        columns.append(here)
    return columns


def _mean(above: set[JobId], rows: dict[JobId, int]) -> float:
    return sum(rows.get(one, 0) for one in above) / len(above) if above else 0.0


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
        short=name if len(name) <= _LETTERS else f"{name[: _LETTERS - 1]}…",
        address=f"/ui/jobs/{quote(name, safe='')}/dependencies" if known else None,
        state=word,
        icon=icon,
        here=job_id == found.job.id,
    )


def _line(edge: Edge, places: dict[JobId, tuple[int, int]]) -> Line:
    (x1, y1), (x2, y2) = places[edge.parent], places[edge.child]
    start, end, middle = x1 + WIDE, x2 - 7, (x1 + WIDE + x2) // 2
    from_y, to_y = y1 + TALL // 2, y2 + TALL // 2
    return Line(
        path=f"M{start} {from_y}C{middle} {from_y} {middle} {to_y} {end} {to_y}",
        kind=edge.kind,
        head=f"M{end} {to_y - 5}l8 5l-8 5z",
    )


def neighbours_of(found: Neighbourhood) -> Iterator[tuple[str, str, str]]:
    """The lines of the picture in words: who, how, whom."""
    for edge in found.edges:
        how = "waits for" if edge.kind == "depends_on" else "runs after each success of"
        yield _name(found, edge.child), how, _name(found, edge.parent)
