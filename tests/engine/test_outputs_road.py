"""Output of runs that come over the streams, with several instances; and what people skip there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from noonday.control.outputs import Outputs
from noonday.domain.execution import ExecutionState, SkipReason
from noonday.domain.schedule import Interval, IntervalUnit, Manual
from noonday.targets.tasks import current
from noonday.testing import FlakyRoad, ManualClock, ManualInstance


@pytest.fixture
async def scheduler(db_url: str) -> AsyncIterator[ManualInstance]:
    clock = ManualClock()
    async with ManualInstance(db_url, clock=clock, road=FlakyRoad(clock)) as made:
        yield made


async def text_of(scheduler: ManualInstance, run: str, attempt: int) -> str:
    reading = await Outputs(scheduler.db).read(run, attempt)
    return "".join(one.piece.text for one in reading.written)


async def test_each_attempt_keeps_its_words_wherever_it_ran(scheduler: ManualInstance) -> None:
    """The first instance dies in the middle; another one takes the message, and writes apart from it."""

    @scheduler.task
    async def work() -> None:
        current().output(f"attempt {current().attempt} begins")
        await scheduler.clock.sleep(20)
        current().output("and ends")

    await scheduler.add("talks", Manual(), "work", scheduler_version=2)
    run = await scheduler.jobs.force_run("talks", "test")
    await scheduler.tick(seconds=2)
    async with scheduler.another() as second:
        await scheduler.kill()
        await second.tick(minutes=3)
        [row] = await second.history("talks")
        assert (row.state, row.attempt) == (ExecutionState.COMPLETED, 2)
        assert await text_of(second, run.id, 1) == "attempt 1 begins\n"
        assert await text_of(second, run.id, 2) == "attempt 2 begins\nand ends\n"
        assert (await Outputs(second.db).read(run.id)).attempt == 2


async def test_a_run_that_was_skipped_leaves_a_message_that_starts_nothing(
    scheduler: ManualInstance,
) -> None:
    """It is planned and pledged to the road already when somebody skips it."""
    ran = []

    @scheduler.task
    async def work() -> None:
        ran.append(current().scheduled_for)

    every = Interval(count=10, unit=IntervalUnit.SECONDS)
    job = await scheduler.add("often", every, "work", scheduler_version=2)
    first = job.next_run_at
    assert first is not None
    await scheduler.tick(seconds=9)
    assert [row.scheduled_for for row in await scheduler.history("often")] == [first]
    await scheduler.jobs.skip_next("often", "alice")
    await scheduler.tick(seconds=25)
    assert ran == [first + timedelta(seconds=10), first + timedelta(seconds=20)]
    rows = await scheduler.history("often")
    assert (rows[0].state, rows[0].skip_reason) == (ExecutionState.SKIPPED, SkipReason.SKIPPED)
