"""Spreads the starts of the coming day more evenly: which jobs to move, and by how much.

Greedy: the jobs in the fullest slots first, each once, to where the fewest others start; ties go to the
minute with the fewest starts, then to the smallest shift. The day is taken for a ring. A job that starts
often is worth moving only if that helps most of its starts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from noonday.domain.job import Job, JobId
from noonday.domain.load import MINUTE, MINUTES, Load, Walk, by_minute, first_minute, in_slots, walks_of
from noonday.domain.schedule import Timing
from noonday.domain.shifting import Held, room, shifted, stays
from noonday.domain.upcoming import Firing, fires

_WORTH: Final = 0.5  # fewer starts beside each of its own: less is not worth a change
_TRIED: Final = 1000  # jobs that are looked at, at most: those in the fullest slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    slot: timedelta = timedelta(minutes=15)
    protection: timedelta = timedelta(minutes=30)  # what fires within it stays; nothing is moved into it
    cooldown: timedelta = timedelta(hours=1)  # after which a moved job may be moved again
    fixed_minutes: bool = False  # may the single minute of a cron text be changed?
    most: int = 100  # moves


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    job: Job  # as it is
    shift: timedelta
    timing: Timing  # as it would be
    next_before: datetime
    next_after: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    before: Load
    after: Load
    moves: tuple[Move, ...]
    held: Mapping[Held, int]  # jobs that are left where they are, by the reason


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mover:
    job: Job
    first: datetime
    minutes: Sequence[int]


def distribution(all_jobs: Iterable[Firing], now: datetime, slot: timedelta) -> Load:
    start = first_minute(now, slot)
    return in_slots(by_minute(walks_of(all_jobs, now, start).values()), start, slot)


def propose(
    all_jobs: Collection[Job],
    now: datetime,
    rules: Rules,
    *,
    staying: Mapping[JobId, Held] | None = None,
    only: Collection[JobId] | None = None,
) -> Proposal:
    """`staying` must not be moved, each for a reason of its own; with `only`, no others are moved."""
    start = first_minute(now, rules.slot)
    walks = walks_of(all_jobs, now, start)
    day = _Day(by_minute(walks.values()), rules.slot // MINUTE)
    before = in_slots(day.minutes, start, rules.slot)
    movers: list[_Mover] = []
    held: Counter[Held] = Counter()
    for job in all_jobs:
        if walks[job.id].minutes and (only is None or job.id in only):
            found = (staying or {}).get(job.id) or _mover(job, walks[job.id], now, rules)
            if isinstance(found, Held):
                held[found] += 1
            else:
                movers.append(found)
    movers.sort(key=lambda mover: (-day.crowd(mover.minutes) / len(mover.minutes), mover.job.id))
    moves = tuple(islice(_moves(movers[:_TRIED], day, now, rules), rules.most))
    return Proposal(before=before, after=in_slots(day.minutes, start, rules.slot), moves=moves, held=held)


def _mover(job: Job, seen: Walk, now: datetime, rules: Rules) -> _Mover | Held:
    held = stays(job, fixed_minutes=rules.fixed_minutes)
    if held is not None:
        return held
    first = next(fires(job, now))
    return Held.SOON if first < now + rules.protection else _Mover(job=job, first=first, minutes=seen.minutes)


def _moves(movers: Iterable[_Mover], day: _Day, now: datetime, rules: Rules) -> Iterator[Move]:
    earliest = now + rules.protection
    for mover in movers:
        job, first = mover.job, mover.first
        nexts = room(job, now, first, earliest, fixed_minutes=rules.fixed_minutes).nexts
        minutes = day.settle(mover.minutes, nexts)
        if minutes:
            next_at = nexts[minutes]
            yield Move(
                job=job,
                shift=minutes * MINUTE,
                timing=shifted(job, minutes, next_at),
                next_before=first,
                next_after=next_at,
            )


class _Day:
    """Starts by minute and by slot, while jobs are moved about."""

    def __init__(self, minutes: list[float], size: int) -> None:
        self.minutes = minutes
        self._size = size
        self._slots = [sum(minutes[first : first + size]) for first in range(0, MINUTES, size)]

    def crowd(self, minutes: Iterable[int], shift: int = 0) -> float:
        """How many starts there are in the slots of these minutes."""
        return sum(self._slots[(minute + shift) % MINUTES // self._size] for minute in minutes)

    def settle(self, own: Sequence[int], shifts: Collection[int]) -> int:
        """Puts a job where it disturbs least; by how many minutes it has moved."""
        self._add(own, 0, -1)
        crowds = {shift: self.crowd(own, shift) for shift in shifts}
        lowest = min(crowds.values(), default=0.0)
        worth = self.crowd(own) - lowest >= _WORTH * len(own) and bool(crowds)
        good = [shift for shift, crowd in crowds.items() if crowd == lowest] if worth else [0]
        best = min(good, key=lambda shift: (self._beside(own, shift), abs(shift), shift))
        self._add(own, best, 1)
        return best

    def _beside(self, own: Iterable[int], shift: int) -> float:
        return sum(self.minutes[(minute + shift) % MINUTES] for minute in own)

    def _add(self, own: Iterable[int], shift: int, count: int) -> None:
        for minute in own:
            place = (minute + shift) % MINUTES
            self.minutes[place] += count
            self._slots[place // self._size] += count
