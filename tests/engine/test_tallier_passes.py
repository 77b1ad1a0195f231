"""The leader tallies what has settled: all of the past after an upgrade, and then what is new."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import delete

from noonday.control.loads import Loads
from noonday.domain.execution import ExecutionState
from noonday.domain.schedule import Interval, IntervalUnit
from noonday.engine.loop import Wish
from noonday.engine.tallier import TallierConfig
from noonday.store.tables import executions
from noonday.testing import ManualInstance

MINUTE = timedelta(minutes=1)


async def tally(scheduler: ManualInstance) -> list[Wish]:
    tallier = scheduler.engine.tallier
    tallier._config = config = TallierConfig(batch=5)
    wishes = [await tallier.run_once()]
    while wishes[-1] != config.every:
        wishes.append(await tallier.run_once())
    return wishes


async def test_it_goes_through_the_past_in_batches_and_then_looks_once_a_minute(
    scheduler: ManualInstance,
) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    began = scheduler.clock.now()
    await scheduler.add("often", Interval(count=4, unit=IntervalUnit.MINUTES), "work")
    await scheduler.tick(minutes=80)
    loads = Loads(scheduler.db, scheduler.clock)
    before = await loads.past(began, scheduler.clock.now())
    assert sum(hour.starts for hour in before.hours.values()) == 19
    assert len(await tally(scheduler)) == 1 + 18 // 5 + 1  # the first only makes room
    assert await tally(scheduler) == [MINUTE]  # nothing is left to do
    assert (await loads.past(began, scheduler.clock.now())).hours == before.hours
    ended = executions.c.state == ExecutionState.COMPLETED.value
    old = executions.c.scheduled_for < scheduler.clock.now() - 10 * MINUTE
    await scheduler.db.write(lambda conn: conn.execute(delete(executions).where(old, ended)))
    assert (await loads.past(began, scheduler.clock.now())).hours == before.hours  # none is read again


async def test_it_is_the_leaders_alone_and_checks_its_term(scheduler: ManualInstance) -> None:
    engine = scheduler.engine
    assert engine.tallier in engine.actors
    assert engine.tallier.gate is engine.elector
    assert engine.tallier._fence == engine.elector.fence
