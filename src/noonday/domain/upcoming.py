"""When a job will fire, as far as that is known today."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import chain, islice, takewhile

from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import Job
from noonday.domain.occurrences import count_between, open_times
from noonday.domain.wallclock import TICK


def fires(job: Job, now: datetime, since: datetime | None = None) -> Iterator[datetime]:
    """The times after now, in order; with `since`, those from there on. One that is overdue comes first.

    Jitter is not in them. Of a fixed delay only the next is known: those after it depend on its end.
    """
    cursor = job.next_run_at
    if cursor is None or not job.armed:
        return iter(())
    now = max(now, job.skipped_through or now)
    if since is not None and since > max(cursor, now):
        return _from(job, cursor, since)
    if is_fixed_delay(job.timing):
        found: Iterator[datetime] = iter((cursor,))
    elif cursor <= now:
        found = _at_most(job, chain((cursor,), open_times(job.timing, job.id, cursor)), job.fire_count)
    else:
        found = _after(job, now, cursor)
    return found if since is None else (at for at in found if at >= since)


def _after(job: Job, now: datetime, cursor: datetime) -> Iterator[datetime]:
    """What lies before the cursor is planned, and counted, already."""
    planned = sum(1 for _ in takewhile(lambda at: at < cursor, open_times(job.timing, job.id, now)))
    return _at_most(job, open_times(job.timing, job.id, now), max(job.fire_count - planned, 0))


def _from(job: Job, cursor: datetime, since: datetime) -> Iterator[datetime]:
    """Found without walking there; what `max_runs` leaves is then counted as if it were always open."""
    if is_fixed_delay(job.timing):
        return iter(())
    fired = job.fire_count
    if job.timing.max_runs is not None:
        fired += count_between(job.timing, job.id, cursor, since - TICK)[0]
    return _at_most(job, open_times(job.timing, job.id, since - TICK), fired)


def _at_most(job: Job, times: Iterator[datetime], fired: int) -> Iterator[datetime]:
    most = job.timing.max_runs
    return times if most is None else islice(times, max(most - fired, 0))
