"""One job's runs side by side on a line of time: past, running and to come, none drawn over another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from noonday.domain.execution import ExecutionId, ExecutionState

PLANNED: Final = "planned"  # the state of a run that is not yet a row
LATE: Final = timedelta(minutes=1)  # a start that much after its due time is worth a mark
_ROWS: Final = 3  # runs drawn above each other, at most
# What several runs too close to be told apart look like: the one that people must see.
_WORST: Final = ("failed", "running", "cancelled", "skipped", "pending", "queued", "completed", PLANNED)
_RAN: Final = frozenset({"running", "completed", "failed", "cancelled"})
_STARTS: Final = _RAN | {"queued", "pending"}


class Grouping(StrEnum):
    NONE = "none"
    SERVICE = "service"
    TAG = "tag"  # the first one


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a line of time needs to know of an execution."""

    id: ExecutionId
    state: ExecutionState
    scheduled_for: datetime
    available_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    through_at: datetime | None = None
    attempt: int = 0  # the newest; `started_at` is the start of it
    instants: int = 1  # due instants that it stands for


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """A run, or several of them; `id` is that of a single one that exists."""

    start: datetime
    end: datetime
    state: str
    due: datetime
    count: int = 1
    id: ExecutionId | None = None
    row: int = 0

    @property
    def lateness(self) -> timedelta:
        """From due to the start of a run that started, or still waits to."""
        starts = self.count == 1 and self.state in _STARTS
        return max(self.start - self.due, timedelta()) if starts else timedelta()

    @property
    def late(self) -> bool:
        return self.start - self.due > LATE and self.count == 1 and self.state in _STARTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The marks in order; `counts` are of single runs, by state, before any were drawn as one."""

    marks: tuple[Mark, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    late: int = 0
    overlaps: int = 0  # runs that started while another was still going
    rows: int = 1


def mark_of(seen: Seen, now: datetime) -> Mark:
    """Where a run lies: from its start to its end. One that waits lies where it may start, one that never did
    where it was due. A retry is not late: nobody knows any more when the first attempt started."""
    match seen.state:
        case ExecutionState.SKIPPED:
            start, end = seen.scheduled_for, seen.through_at or seen.scheduled_for
        case ExecutionState.PENDING | ExecutionState.QUEUED:
            start = end = max(seen.available_at or now, now)
        case ExecutionState.RUNNING:
            start, end = seen.started_at or now, now
        case _:
            start = seen.started_at or seen.scheduled_for
            end = (seen.completed_at if seen.started_at else None) or start
    waits = seen.state in (ExecutionState.PENDING, ExecutionState.QUEUED)
    retried = seen.attempt > (0 if waits else 1)
    return Mark(
        start=start,
        end=max(start, end),
        state=seen.state.value,
        due=start if retried else min(seen.scheduled_for, start),
        count=seen.instants,
        id=seen.id,
    )


def usual_span(marks: Iterable[Mark]) -> timedelta:
    """How long completed runs took on average; nothing if there were none."""
    spans = [one.end - one.start for one in marks if one.state == ExecutionState.COMPLETED.value]
    return sum(spans, timedelta()) / len(spans) if spans else timedelta()


def planned(times: Iterable[datetime], took: timedelta) -> list[Mark]:
    return [Mark(start=at, end=at + took, state=PLANNED, due=at) for at in times]


def line_of(marks: Iterable[Mark], step: timedelta, most: int) -> Line:
    """With more than `most` marks, those that begin within one `step` are drawn as one."""
    ordered = sorted(marks, key=lambda one: (one.start, one.end))
    counts: Counter[str] = Counter()
    for one in ordered:
        counts[one.state] += one.count
    placed, overlaps = _side_by_side(ordered)
    if len(placed) > most:
        placed = _merged(placed, step)
    return Line(
        marks=tuple(placed),
        counts=counts,
        late=sum(one.late for one in ordered),
        overlaps=overlaps,
        rows=1 + max((one.row for one in placed), default=0),
    )


def _side_by_side(ordered: Sequence[Mark]) -> tuple[list[Mark], int]:
    """Each run in the first row that is free at its start; and how many found the first one taken."""
    free: list[datetime] = []
    placed: list[Mark] = []
    overlaps = 0
    for one in ordered:
        if one.state not in _RAN:
            placed.append(one)
            continue
        row = next((place for place, until in enumerate(free) if until <= one.start), len(free))
        overlaps += row > 0
        if row == len(free) < _ROWS:
            free.append(one.end)
        row = min(row, len(free) - 1)
        free[row] = max(free[row], one.end)
        placed.append(replace(one, row=row) if row else one)
    return placed, overlaps


def _merged(marks: Sequence[Mark], step: timedelta) -> list[Mark]:
    """What is to come stays apart from what was."""
    made: list[Mark] = []
    bins: dict[tuple[bool, int], int] = {}
    first = marks[0].start
    for one in marks:
        key = (one.state == PLANNED, (one.start - first) // step)
        place = bins.setdefault(key, len(made))
        if place == len(made):
            made.append(replace(one, row=0) if one.row else one)
        else:
            made[place] = _both(made[place], one)
    return made


def _both(one: Mark, other: Mark) -> Mark:
    worst = min(one.state, other.state, key=_WORST.index)
    return Mark(
        start=one.start,
        end=max(one.end, other.end),
        state=worst,
        due=one.start,
        count=one.count + other.count,
    )
