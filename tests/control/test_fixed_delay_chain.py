"""A job with a fixed delay has one chain of runs, whatever people do to it while one of them is open."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from noonday.domain.job import Job, RetryPolicy
from noonday.domain.schedule import Interval, IntervalUnit
from noonday.testing import ManualInstance

DELAY = Interval(count=5, unit=IntervalUnit.SECONDS, after_completion=True)
SHORTER = replace(DELAY, count=3)


@pytest.fixture
async def scheduler(db_url: str) -> AsyncIterator[ManualInstance]:
    async with ManualInstance(db_url) as made:
        yield made


@pytest.fixture
async def job(scheduler: ManualInstance) -> Job:
    """Each run of it fails once and is tried again two seconds later."""
    tries: list[int] = []

    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(1)
        tries.append(1)
        if len(tries) % 2:
            raise RuntimeError

    again = RetryPolicy(max_retries=1, backoff=timedelta(seconds=2))
    return await scheduler.add("chained", DELAY, "work", retry=again)


async def one_after_the_other(scheduler: ManualInstance, delay: float) -> None:
    rows = await scheduler.history("chained")
    assert len(rows) > 3
    for before, after in pairwise(rows):
        assert before.completed_at is not None
        assert (after.scheduled_for - before.completed_at).total_seconds() == pytest.approx(delay)


@pytest.mark.parametrize("at", [5.5, 7.0], ids=["while it runs", "while it waits for its retry"])
@pytest.mark.parametrize("by", ["people", "plain SQL"])
async def test_an_edit_begins_no_second_chain(
    scheduler: ManualInstance, job: Job, at: float, by: str
) -> None:
    await scheduler.tick(seconds=at)
    if by == "people":
        await scheduler.jobs.change(
            "chained", lambda old: replace(old, timing=replace(old.timing, schedule=SHORTER))
        )
    else:
        await scheduler.db.write(
            lambda conn: conn.exec_driver_sql("UPDATE jobs SET interval_minutes = 3 WHERE name = 'chained'")
        )
    await scheduler.tick(seconds=60)
    await one_after_the_other(scheduler, 3)


async def test_a_short_pause_begins_no_second_chain(scheduler: ManualInstance, job: Job) -> None:
    await scheduler.tick(seconds=7)
    await scheduler.jobs.pause("chained")
    await scheduler.jobs.resume("chained")
    await scheduler.tick(seconds=60)
    await one_after_the_other(scheduler, 5)
