"""Jobs and runs to measure with: a few kinds of job, due when it is wanted, that do next to nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Final, TypeVar

from noonday.clock import wall_clock
from noonday.domain.execution import Execution
from noonday.domain.job import CatchUp, Job, JobId, JobState, MisfirePolicy, Overlap, OverlapPolicy
from noonday.domain.schedule import Interval, IntervalUnit, Manual, Once, Schedule, Timing
from noonday.domain.target import PythonTarget, Target
from noonday.ids import new_id
from noonday.store import executions, jobs, records
from noonday.store.database import Database

__all__ = ["TASK", "Kind", "add", "batches", "missed", "once", "recurring", "waiting"]

TASK: Final = "bench-note"
_BATCH: Final = 1000
_NOTE: Final = PythonTarget(task=TASK)
_TICK: Final = timedelta(microseconds=1)
_GOES_ON: Final = OverlapPolicy(overlap=Overlap.ALLOW)
_LATE_IS_FINE: Final = MisfirePolicy(coalesce=False, catch_up=CatchUp.ALL)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What the jobs have in common: where they go along and what they do."""

    version: int = 1  # 2 takes the streams
    target: Target = _NOTE

    def job(self, schedule: Schedule, first: datetime | None, anchor: datetime) -> Job:
        now = wall_clock()
        made = new_id(now)
        return Job(
            id=JobId(made),
            name=f"bench-{made}",
            timing=Timing(schedule=schedule, anchor_at=anchor),
            target=self.target,
            scheduler_version=self.version,
            state=JobState.PENDING if first is None else JobState.SCHEDULED,
            next_run_at=first,
            created_at=now,
            updated_at=now,
        )


def once(kind: Kind, at: datetime) -> Job:
    return kind.job(Once(run_at=at), at, at)


def recurring(kind: Kind, first: datetime, every: timedelta, *, runs: int | None = None) -> Job:
    """Due every so many whole seconds from `first` on, for ever or for so many runs."""
    seconds = round(every.total_seconds())
    made = kind.job(Interval(count=seconds, unit=IntervalUnit.SECONDS), first, first - every)
    return replace(made, timing=replace(made.timing, max_runs=runs))


def missed(kind: Kind, now: datetime, count: int, each: int) -> Iterator[Job]:
    """Jobs that have missed `count` fires between them, `each` of every job, and shall run all of them."""
    every = timedelta(seconds=1)
    for start in range(0, count, each):
        runs = min(each, count - start)
        job = recurring(kind, now - every * (runs + 1), every, runs=runs)
        yield replace(job, misfire=_LATE_IS_FINE, overlapping=_GOES_ON)


def waiting(kind: Kind, count: int, among: int) -> tuple[list[Job], list[Execution]]:
    """`count` runs that wait in the queue already, as if people had asked for them, of so many jobs."""
    now = wall_clock()
    made = [replace(kind.job(Manual(), None, now), overlapping=_GOES_ON) for _ in range(among)]
    runs = []
    for number in range(count):
        at = now - _TICK * (count - number)  # each has a moment of its own
        runs.append(records.forced(made[number % among], at, None, None))
    return made, runs


def add(db: Database, made: Iterable[Job], runs: Sequence[Execution] = (), *, pledged: bool = False) -> None:
    """Written as the scheduler would write them; `pledged` runs are put on the streams by the caller."""
    for some in batches(made):
        db.write_now(partial(jobs.add_many, made=some))
    for part in batches(runs):
        ids = [run.id for run in part] if pledged else []
        db.write_now(partial(executions.plan, planned=part, pledged=ids))


def batches(items: Iterable[T], size: int = _BATCH) -> Iterator[list[T]]:
    rest = iter(items)
    while some := list(islice(rest, size)):
        yield some
