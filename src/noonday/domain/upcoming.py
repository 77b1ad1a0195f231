"""When a job will fire, as far as that is known today."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice, takewhile
from typing import Protocol

from noonday.domain.dials import open_until
from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import JobId
from noonday.domain.occurrences import count_between, open_times
from noonday.domain.schedule import Timing
from noonday.domain.wallclock import TICK

Times = Callable[[datetime], Iterator[datetime]]  # those of a schedule that are open, after an instant


class Firing(Protocol):
    """What must be known of a job to tell when it fires: a whole Job, or a Timed."""

    @property
    def id(self) -> JobId: ...
    @property
    def timing(self) -> Timing: ...
    @property
    def armed(self) -> bool: ...
    @property
    def next_run_at(self) -> datetime | None: ...
    @property
    def skipped_through(self) -> datetime | None: ...
    @property
    def fire_count(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """A job without all that has nothing to do with its times: thousands of them are cheap."""

    id: JobId
    timing: Timing
    next_run_at: datetime | None
    skipped_through: datetime | None = None
    fire_count: int = 0
    armed: bool = True


def fires(job: Firing, now: datetime, since: datetime | None = None) -> Iterator[datetime]:
    """The times after now, in order; with `since`, those from there on. One that is overdue comes first.

    Jitter is not in them. Of a fixed delay only the next is known: those after it depend on its end.
    """
    return _fires(job, now, since, lambda after: open_times(job.timing, job.id, after))


def fires_until(
    job: Firing, now: datetime, until: datetime, since: datetime | None = None
) -> Iterator[datetime]:
    """The same up to `until`, which are found sooner."""
    found = _fires(job, now, since, lambda after: open_until(job.timing, job.id, after, until))
    return takewhile(until.__ge__, found)


def _fires(job: Firing, now: datetime, since: datetime | None, times: Times) -> Iterator[datetime]:
    cursor = job.next_run_at
    if cursor is None or not job.armed:
        return iter(())
    now = max(now, job.skipped_through or now)
    if since is not None and since > max(cursor, now):
        return _from(job, cursor, since, times)
    if is_fixed_delay(job.timing):
        found: Iterator[datetime] = iter((cursor,))
    elif cursor <= now:
        found = _at_most(job, chain((cursor,), times(cursor)), job.fire_count)
    else:
        found = _after(job, now, cursor, times)
    return found if since is None else (at for at in found if at >= since)


def _after(job: Firing, now: datetime, cursor: datetime, times: Times) -> Iterator[datetime]:
    """What lies before the cursor is planned, and counted, already."""
    if job.timing.max_runs is None:
        return times(now)
    planned = sum(1 for _ in takewhile(lambda at: at < cursor, times(now)))
    return _at_most(job, times(now), max(job.fire_count - planned, 0))


def _from(job: Firing, cursor: datetime, since: datetime, times: Times) -> Iterator[datetime]:
    """Found without walking there; what `max_runs` leaves is then counted as if it were always open."""
    if is_fixed_delay(job.timing):
        return iter(())
    fired = job.fire_count
    if job.timing.max_runs is not None:
        fired += count_between(job.timing, job.id, cursor, since - TICK)[0]
    return _at_most(job, times(since - TICK), fired)


def _at_most(job: Firing, times: Iterator[datetime], fired: int) -> Iterator[datetime]:
    most = job.timing.max_runs
    return times if most is None else islice(times, max(most - fired, 0))
