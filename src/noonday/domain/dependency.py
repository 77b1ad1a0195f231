"""Whether the jobs a job depends on succeeded for its period, and whether dependencies run in a circle."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from noonday.domain.execution import ExecutionState
from noonday.domain.job import JobId

_BREAKING = frozenset({ExecutionState.FAILED.value, ExecutionState.CANCELLED.value})


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentFacts:
    """What is known of one job that the child depends on."""

    job_id: JobId
    name: str
    last_success_for: datetime | None = None  # the newest slot it completed
    last_success_at: datetime | None = None  # when its newest success was completed
    last_status: str | None = None  # how its newest finished execution ended
    last_status_for: datetime | None = None  # the slot that last_status tells of, where known
    open: bool = False  # an execution of it is running, queued or waiting


@dataclass(frozen=True, slots=True)
class Ready:
    pass


@dataclass(frozen=True, slots=True)
class Waiting:
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """A parent ended without success and nothing of it is under way: this period will not come."""

    name: str


Readiness = Ready | Waiting | Broken


def readiness(
    parents: Iterable[ParentFacts], *, covers_from: datetime | None, last_run_at: datetime | None
) -> Readiness:
    """Have all parents succeeded for the child's period, which began after `covers_from`, its previous slot?

    A success completed after the child's own last run counts too: of an earlier period, but not yet used.
    """
    missing = [parent for parent in parents if not _succeeded(parent, covers_from, last_run_at)]
    if not missing:
        return Ready()
    for parent in missing:
        if _broken(parent, covers_from):
            return Broken(parent.name)
    return Waiting(tuple(parent.name for parent in missing))


def _succeeded(parent: ParentFacts, covers_from: datetime | None, last_run_at: datetime | None) -> bool:
    if parent.last_success_for is None or parent.last_success_at is None:
        return False
    if covers_from is not None and parent.last_success_for > covers_from:
        return True
    return last_run_at is None or parent.last_success_at > last_run_at


def _broken(parent: ParentFacts, covers_from: datetime | None) -> bool:
    if parent.open or parent.last_status not in _BREAKING:
        return False
    # The failure of an earlier period says nothing about this one, whose run may just not be planned yet.
    return parent.last_status_for is None or covers_from is None or parent.last_status_for > covers_from


def find_cycle(edges: Mapping[JobId, Iterable[JobId]], start: JobId) -> list[JobId] | None:
    """A shortest way from `start` along `edges` back to it, with `start` at both ends, if there is one."""
    came_from: dict[JobId, JobId] = {}
    ahead = deque([start])
    while ahead:
        here = ahead.popleft()
        for there in edges.get(here, ()):
            if there == start:
                return _way(came_from, here, start)
            if there not in came_from:
                came_from[there] = here
                ahead.append(there)
    return None


def _way(came_from: Mapping[JobId, JobId], last: JobId, start: JobId) -> list[JobId]:
    backwards = [start]
    while last != start:
        backwards.append(last)
        last = came_from[last]
    return [start, *reversed(backwards)]
