"""A crowd that takes the streams: gathered from the rows before its moment, and the rest put on the road."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from functools import partial

import pytest

from noonday.domain.execution import ExecutionState, Road
from noonday.domain.job import Lane
from noonday.domain.schedule import Immediate, Once
from noonday.engine.crowds import EARLIEST, FOR_EACH, NEAR
from noonday.engine.gatherer import Gatherer
from noonday.engine.loop import AT_ONCE
from noonday.engine.planner import PlannerConfig
from noonday.engine.worker import WorkerConfig
from noonday.store import executions, feeding, history, instances
from noonday.store.instances import Instance
from noonday.testing import FlakyRoad, ManualClock, ManualInstance
from tests.engine.crowd_steps import BATCH, COUNT, Started, states
from tests.factories import an_execution

MS = timedelta(milliseconds=1)
SECOND = timedelta(seconds=1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def road(clock: ManualClock) -> FlakyRoad:
    return FlakyRoad(clock)


@pytest.fixture
async def scheduler(db_url: str, clock: ManualClock, road: FlakyRoad) -> AsyncIterator[ManualInstance]:
    async with ManualInstance(db_url, clock=clock, road=road) as made:
        engine = made.engine
        engine.slots.most = BATCH
        engine.planner._config = PlannerConfig(crowd=COUNT)
        engine.gatherer = Gatherer(
            db=made.db,
            clock=made.clock,
            counters=engine.counters,
            slots=engine.slots,
            streams=engine.streams,
            config=WorkerConfig(instance_id="manual", lead=100 * MS),
        )
        await engine.finder.run_once()  # it has measured the road: there is room
        assert engine.feeder.lanes
        yield made


@pytest.fixture
async def moment(scheduler: ManualInstance) -> datetime:
    """When all of them are due; they are planned, and it is nearly four seconds away."""
    due = scheduler.clock.now() + 10 * SECOND
    for number in range(COUNT):
        lane = Lane.HIGH if number % 4 == 3 else Lane.NORMAL
        await scheduler.add(f"one-{number}", Once(run_at=due), "work", scheduler_version=2, lane=lane)
    planner = scheduler.engine.planner
    assert await planner.run_once() == due - 4 * SECOND
    scheduler.clock.move_to(due - 4 * SECOND)
    await planner.run_once()
    assert await states(scheduler) == {ExecutionState.QUEUED: COUNT}
    return due


async def gathered(scheduler: ManualInstance, moment: datetime) -> int:
    """How many, by an instance that is woken long before."""
    gatherer = scheduler.engine.gatherer
    scheduler.clock.move_to(moment - 3 * SECOND)
    assert await gatherer.run_once() == moment - NEAR - EARLIEST
    scheduler.clock.move_to(moment - NEAR - EARLIEST)
    assert await gatherer.run_once() == moment - NEAR - COUNT * FOR_EACH, "before the finder does"
    assert await states(scheduler) == {ExecutionState.QUEUED: COUNT}, "so long it does not take"
    assert await gatherer.run_once() == AT_ONCE
    return (await states(scheduler))[ExecutionState.RUNNING]


async def all_runs(scheduler: ManualInstance, moment: datetime, started: Started) -> None:
    """Each at the moment, and once."""
    scheduler.clock.move_to(moment)
    for _ in range(100):
        await scheduler.run_once()
        if started.all.is_set():
            break
    await scheduler.run_once()
    assert set(started.at) == {moment}
    assert len(started.at) == COUNT
    assert await states(scheduler) == {ExecutionState.COMPLETED: COUNT}


async def unfed_at(scheduler: ManualInstance) -> datetime | None:
    return await scheduler.db.read(feeding.next_unfed_at)


async def test_a_crowd_is_gathered_and_nothing_of_it_goes_on_the_road(
    scheduler: ManualInstance, road: FlakyRoad, moment: datetime
) -> None:
    started = Started(scheduler)
    assert await unfed_at(scheduler) == moment
    await scheduler.engine.finder.run_once()
    assert (len(scheduler.engine.feeder), await unfed_at(scheduler)) == (0, moment), "it is left alone"
    assert await gathered(scheduler, moment) == COUNT
    assert scheduler.engine.slots.waiting == COUNT
    assert started.at == []
    await all_runs(scheduler, moment, started)
    assert (scheduler.engine.counters.enqueued, len(road)) == (0, 0)


async def test_each_takes_its_share_and_the_rest_goes_on_the_road(
    scheduler: ManualInstance, road: FlakyRoad, moment: datetime
) -> None:
    started = Started(scheduler)
    now = scheduler.clock.now()
    slots = scheduler.engine.slots.size
    for name in ("mine", "other"):
        one = Instance(
            id=name, host="", pid=0, roles=("worker",), started_at=now, heartbeat_at=now, slots=slots
        )
        await scheduler.db.write(partial(instances.beat, instance=one))
    gatherer = scheduler.engine.gatherer
    scheduler.clock.move_to(moment - SECOND)
    await gatherer.run_once()
    await gatherer.run_once()
    mine = (await states(scheduler))[ExecutionState.RUNNING]
    assert COUNT / 2 <= mine <= COUNT / 2 + slots
    await scheduler.engine.finder.run_once()
    assert len(scheduler.engine.feeder) == 0, "others may still gather"
    scheduler.clock.move_to(moment - NEAR)
    await scheduler.engine.finder.run_once()
    assert len(scheduler.engine.feeder) == COUNT - mine
    await all_runs(scheduler, moment, started)
    assert scheduler.engine.counters.enqueued == COUNT - mine


async def test_the_highest_lane_comes_first(scheduler: ManualInstance, moment: datetime) -> None:
    slots = scheduler.engine.slots
    slots.size = 1
    scheduler.clock.move_to(moment - SECOND)
    gatherer = scheduler.engine.gatherer
    gatherer._crowds._batch = 2
    wish = await gatherer.run_once()
    assert isinstance(wish, datetime)
    scheduler.clock.move_to(wish)
    gatherer._crowds.share = COUNT // 4 - 1  # and one for the slot
    await gatherer.run_once()
    page = await scheduler.db.read(partial(history.page, limit=COUNT))
    taken = Counter(run.lane for run in page.items if run.state is ExecutionState.RUNNING)
    assert taken == {Lane.HIGH: COUNT // 4}


async def test_what_is_due_beside_a_crowd_is_pledged_as_always(scheduler: ManualInstance) -> None:
    due = scheduler.clock.now() + 10 * SECOND
    for number in range(COUNT):
        await scheduler.add(f"one-{number}", Once(run_at=due), "work", scheduler_version=2)
    planner, feeder = scheduler.engine.planner, scheduler.engine.feeder
    await planner.run_once()
    scheduler.clock.move_to(due - 4 * SECOND)
    await scheduler.add("before", Once(run_at=due - SECOND), "work", scheduler_version=2)
    await planner.run_once()
    assert len(await scheduler.history("before")) == 1
    assert (len(feeder), await unfed_at(scheduler)) == (1, due)


async def test_it_finds_a_crowd_behind_something_else(scheduler: ManualInstance, moment: datetime) -> None:
    """Once that is fed: what is to be retried, for example."""
    scheduler.clock.move_to(moment - 3 * SECOND)
    retried = await scheduler.add("retried", Once(run_at=moment - 1200 * MS), "work", scheduler_version=2)
    run = an_execution(job=retried, scheduled_for=moment - 1200 * MS, road=Road.STREAMS)
    await scheduler.db.write(partial(executions.plan, planned=[run]))
    gatherer = scheduler.engine.gatherer
    scheduler.clock.move_to(moment - 2 * SECOND)
    assert await gatherer.run_once() == run.scheduled_for - NEAR
    scheduler.clock.move_to(run.scheduled_for - NEAR)
    await scheduler.engine.finder.run_once()
    await gatherer.run_once()
    await gatherer.run_once()
    assert (await states(scheduler))[ExecutionState.RUNNING] == COUNT


async def test_a_few_are_not_gathered(scheduler: ManualInstance) -> None:
    """Nor is what is due before them, which is on the road already."""
    soon = scheduler.clock.now() + SECOND
    for number in range(2 * BATCH):
        await scheduler.add(f"few-{number}", Once(run_at=soon), "work", scheduler_version=2)
    planner, gatherer = scheduler.engine.planner, scheduler.engine.gatherer
    await planner.run_once()
    assert len(scheduler.engine.feeder) == 2 * BATCH, "they are pledged"
    assert await gatherer.run_once() is None
    assert set(await states(scheduler)) == {ExecutionState.QUEUED}


async def test_what_is_due_meanwhile_is_neither_gathered_nor_kept_waiting(
    scheduler: ManualInstance, road: FlakyRoad, moment: datetime
) -> None:
    started = Started(scheduler, 1)
    assert await gathered(scheduler, moment) == COUNT
    await scheduler.add("now", Immediate(), "work", scheduler_version=2)
    await scheduler.engine.planner.run_once()
    await scheduler.engine.finder.run_once()
    await scheduler.engine.feeder.run_once()
    assert len(road) == 1
    await scheduler.engine.taker.run_once()
    await asyncio.wait_for(started.all.wait(), 20)
    assert started.at == [scheduler.clock.now()]
    assert scheduler.clock.now() < moment


async def test_where_runs_are_slow_it_is_left_to_the_road(
    scheduler: ManualInstance, road: FlakyRoad, moment: datetime
) -> None:
    scheduler.engine.slots._pace.ran(0.2)
    assert await gathered(scheduler, moment) == 0
    scheduler.clock.move_to(moment - NEAR)
    assert await scheduler.engine.gatherer.run_once() == moment
    await scheduler.engine.finder.run_once()
    scheduler.clock.move_to(moment)
    await scheduler.engine.feeder.run_once()
    assert len(road) == COUNT


async def test_an_instance_that_drains_gathers_nothing(scheduler: ManualInstance, moment: datetime) -> None:
    scheduler.engine.slots.draining = True
    assert await gathered(scheduler, moment) == 0


async def test_while_the_road_is_down_the_worker_claims_it(
    scheduler: ManualInstance, road: FlakyRoad, moment: datetime
) -> None:
    started = Started(scheduler)
    road.down()
    await scheduler.engine.finder.run_once()
    scheduler.clock.move_to(moment - SECOND)
    await scheduler.engine.taker.run_once()
    assert not scheduler.engine.streams.up
    assert await scheduler.engine.gatherer.run_once() is None
    assert await states(scheduler) == {ExecutionState.QUEUED: COUNT}
    await all_runs(scheduler, moment, started)


async def test_a_claim_that_is_handed_back_goes_on_the_road(
    scheduler: ManualInstance, road: FlakyRoad, moment: datetime
) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(60)

    assert await gathered(scheduler, moment) == COUNT
    slots = scheduler.engine.slots
    scheduler.clock.move_to(moment)
    async with asyncio.timeout(20):
        while slots.busy < slots.size:
            await asyncio.sleep(0.005)
    scheduler.clock.advance(seconds=1.1)
    slots.hand_back_what_waits()
    while slots.busy > slots.size:
        await asyncio.sleep(0.005)
    await scheduler.engine.settler.run_once()
    await scheduler.engine.finder.run_once()
    await scheduler.engine.feeder.run_once()
    assert len(road) == COUNT - slots.size
