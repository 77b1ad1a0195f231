"""The test driver that ships with the library, and the example in its docstring."""

from __future__ import annotations

from noonday.domain.execution import ExecutionState
from noonday.domain.schedule import Cron, Interval, IntervalUnit
from noonday.testing import ManualInstance
from tests.factories import at


async def test_it_runs_the_example_of_its_own_docstring() -> None:
    async with ManualInstance() as scheduler:

        @scheduler.task
        async def report() -> None:
            await scheduler.clock.sleep(90)

        await scheduler.add("nightly", Cron(expression="0 2 * * *"), "report")
        await scheduler.tick(days=1)
        [run] = await scheduler.history("nightly")
        assert run.state is ExecutionState.COMPLETED
        assert run.scheduled_for == at("2027-01-02T02:00:00Z")
        assert run.started_at == run.scheduled_for
        assert run.completed_at == at("2027-01-02T02:01:30Z")


async def test_it_fires_every_instant_of_a_tick_on_the_dot(scheduler: ManualInstance) -> None:
    seen = []

    @scheduler.task
    async def work() -> None:
        seen.append(scheduler.clock.now())

    await scheduler.add("often", Interval(count=10, unit=IntervalUnit.SECONDS), "work")
    await scheduler.tick(minutes=1)
    runs = await scheduler.history("often")
    done = [run for run in runs if run.state is ExecutionState.COMPLETED]
    assert [run.scheduled_for for run in done] == seen
    assert len(seen) == 6
    assert seen[0] == at("2027-01-01T12:00:10Z")
