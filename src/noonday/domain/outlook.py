"""How many runs start in each of the next time slots, at a bounded cost however many jobs there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Final

from noonday.domain.fixed_delay import is_fixed_delay
from noonday.domain.job import Job
from noonday.domain.occurrences import open_times
from noonday.domain.plans import runs_left

__all__ = ["outlook"]

_STEPS: Final = 20_000  # fires that one look follows, of all jobs together
_FEWEST: Final = 4  # of one job


def outlook(jobs: Sequence[Job], since: datetime, slot: timedelta, count: int) -> list[float]:
    """Starts in each slot from `since` on. What is overdue starts in the first; jitter is not in it.

    A fast job is followed for a while only: it goes on as it began.
    """
    filled = [0.0] * count
    most = max(_FEWEST, _STEPS // max(len(jobs), 1))
    for job in jobs:
        _fill(filled, job, since, slot, most)
    return filled


def _fill(filled: list[float], job: Job, since: datetime, slot: timedelta, most: int) -> None:
    end = since + slot * len(filled)
    first = last = since
    followed = 0
    for at in islice(_times(job), most):
        if at >= end:
            return
        first, last = (at if not followed else first), at
        filled[max((at - since) // slot, 0)] += 1
        followed += 1
    if followed < most or last <= first or runs_left(job) is not None:
        return
    every = (last - first) / (followed - 1)
    here = max((last - since) // slot, 0)
    filled[here] += (since + slot * (here + 1) - last) / every
    for place in range(here + 1, len(filled)):
        filled[place] += slot / every


def _times(job: Job) -> Iterator[datetime]:
    """From the cursor on. Of a fixed delay only the next is known."""
    cursor = job.next_run_at
    if cursor is None or not job.armed:
        return iter(())
    if is_fixed_delay(job.timing):
        return iter((cursor,))
    return islice(chain((cursor,), open_times(job.timing, job.id, cursor)), runs_left(job))
