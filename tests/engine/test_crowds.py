"""Many runs with one moment: each instance claims its share ahead, and starts nothing before it."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from functools import partial

import pytest

from noonday.domain.execution import ExecutionState, Road
from noonday.domain.schedule import Immediate, Once
from noonday.engine.coming import Coming
from noonday.engine.crowds import EARLIEST, FOR_EACH, Crowds
from noonday.engine.pace import Pace
from noonday.store import executions, instances
from noonday.store.instances import Instance
from noonday.testing import ManualInstance
from tests.engine.crowd_steps import BATCH, COUNT, Started, states

SECOND = timedelta(seconds=1)
MS = timedelta(milliseconds=1)
WAITING = partial(executions.due_until, roads=(Road.DATABASE,))


def crowds(scheduler: ManualInstance, *, slots: int = 10, batch: int = BATCH) -> Crowds:
    return Crowds(db=scheduler.db, slots=slots, batch=batch, longest=EARLIEST)


@pytest.fixture
async def moment(scheduler: ManualInstance) -> datetime:
    """When all of them are due; they are planned, and it is nearly two seconds away."""
    due = scheduler.clock.now() + 1900 * MS
    for number in range(COUNT):
        await scheduler.add(f"one-{number}", Once(run_at=due), "work")
    await scheduler.engine.planner.run_once()
    return due


async def claim_ahead(scheduler: ManualInstance, moment: datetime, *, early: bool = False) -> None:
    """Until the worker has no wish to go on at once."""
    worker = scheduler.engine.worker
    worker._crowds = crowds(scheduler)
    scheduler.engine.slots.most = BATCH
    assert await worker.run_once() == moment - EARLIEST
    scheduler.clock.move_to(moment - EARLIEST)
    begin = await worker.run_once()
    assert begin == moment - COUNT * FOR_EACH
    assert isinstance(begin, datetime)
    assert not scheduler.engine.slots.waiting, "it is not time yet"
    if not early:
        scheduler.clock.move_to(begin)
    async with asyncio.timeout(20):
        while await worker.run_once() == timedelta():
            pass


async def test_a_crowd_is_claimed_before_its_moment_and_starts_at_it(
    scheduler: ManualInstance, moment: datetime
) -> None:
    started = Started(scheduler)
    await claim_ahead(scheduler, moment)
    assert await states(scheduler) == {ExecutionState.RUNNING: COUNT}
    assert (scheduler.engine.slots.waiting, started.at) == (COUNT, [])
    scheduler.clock.move_to(moment)
    await asyncio.wait_for(started.all.wait(), 20)
    assert set(started.at) == {moment}
    await scheduler.run_once()
    assert await states(scheduler) == {ExecutionState.COMPLETED: COUNT}
    assert scheduler.engine.worker._crowds.share == 0, "the crowd is over"


async def test_one_that_is_cancelled_meanwhile_does_not_start(
    scheduler: ManualInstance, moment: datetime
) -> None:
    started = Started(scheduler, COUNT - 1)
    await claim_ahead(scheduler, moment)
    [run] = await scheduler.history("one-7")
    now = scheduler.clock.now()
    await scheduler.db.write(partial(executions.request_cancel, execution_id=run.id, by="ann", now=now))
    await scheduler.engine.leases.run_once()
    scheduler.clock.move_to(moment)
    await asyncio.wait_for(started.all.wait(), 20)
    await scheduler.run_once()
    assert await states(scheduler) == {ExecutionState.COMPLETED: COUNT - 1, ExecutionState.CANCELLED: 1}
    assert [run.state for run in await scheduler.history("one-7")] == [ExecutionState.CANCELLED]


async def test_slow_runs_are_handed_back_a_second_after_the_moment_not_after_the_claim(
    scheduler: ManualInstance, moment: datetime
) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(60)

    await claim_ahead(scheduler, moment)
    slots = scheduler.engine.slots
    scheduler.clock.move_to(moment)
    async with asyncio.timeout(20):
        while slots.busy < slots.size:
            await asyncio.sleep(0.005)
    scheduler.clock.advance(seconds=0.9)
    slots.hand_back_what_waits()
    assert slots.waiting == COUNT - slots.size
    scheduler.clock.advance(seconds=0.2)
    slots.hand_back_what_waits()
    assert slots.waiting == 0
    await scheduler.run_once()
    found = await states(scheduler)
    assert found == {ExecutionState.RUNNING: slots.size, ExecutionState.QUEUED: COUNT - slots.size}


async def test_each_instance_takes_its_share_by_its_slots(
    scheduler: ManualInstance, moment: datetime
) -> None:
    now = scheduler.clock.now()

    async def beat(name: str, slots: int, role: str = "worker", state: str = "running") -> None:
        one = Instance(
            id=name,
            host="h",
            pid=1,
            roles=(role,),
            started_at=now,
            heartbeat_at=now,
            slots=slots,
            state=state,
        )
        await scheduler.db.write(partial(instances.beat, instance=one))

    for one in await scheduler.db.read(instances.everyone):
        await scheduler.db.write(partial(instances.remove, instance_id=one.id))
    await beat("mine", 10)
    await beat("other", 30)
    await beat("api", 0, "api")
    await beat("leaving", 50, state=instances.DRAINING)
    mine = crowds(scheduler)
    assert await mine.before(moment, moment - SECOND, WAITING, 0.0) is not None
    assert mine.share == COUNT // 4


async def test_it_asks_once_for_each_moment_and_only_where_there_is_time(
    scheduler: ManualInstance, moment: datetime
) -> None:
    near = crowds(scheduler)
    assert await near.before(moment, moment - 200 * MS, WAITING, 0.0) is None
    assert near.share == 0
    far = crowds(scheduler)
    assert await far.before(moment, moment - 5 * SECOND, WAITING, 0.0) == moment - EARLIEST
    assert await far.before(moment, moment - SECOND, WAITING, 9.0) == moment - EARLIEST, "claims are slow"
    assert far.share == COUNT
    assert await far.before(moment, moment - SECOND, WAITING, 0.0) is None
    few = crowds(scheduler, batch=COUNT // 2)
    assert await few.before(moment, moment - SECOND, WAITING, 0.0) is None
    assert few.share == 0


async def test_a_clock_that_is_set_back_makes_the_lead_no_longer(
    scheduler: ManualInstance, moment: datetime
) -> None:
    some = crowds(scheduler)
    await some.before(moment, moment - SECOND, WAITING, 0.0)
    assert some.lead(moment - 400 * MS, 10 * MS) == 450 * MS
    assert some.lead(moment - timedelta(hours=1), 10 * MS) == EARLIEST + 50 * MS
    assert some.lead(moment + SECOND, 10 * MS) == 10 * MS
    some.seen(moment)
    assert some.share == COUNT
    some.seen(moment + SECOND)
    assert (some.share, some.lead(moment - 400 * MS, 10 * MS)) == (0, 10 * MS)


async def test_what_is_counted_is_bounded(scheduler: ManualInstance, moment: datetime) -> None:
    async def due(until: datetime, most: int) -> int:
        return await scheduler.db.read(partial(WAITING, until=until, most=most))

    assert await due(moment, 1000) == COUNT
    assert await due(moment, 7) == 7
    assert await due(moment - MS, 1000) == 0


def test_runs_are_taken_for_fast_until_they_are_known_to_be_slow() -> None:
    pace = Pace(slots=10, most=500)
    assert pace.may_be_fast, "nobody knows yet"
    pace.ran(0.2)
    assert not pace.may_be_fast
    for _ in range(100):
        pace.ran(0.0005)
    assert pace.may_be_fast


async def test_where_runs_are_slow_no_slot_waits_for_a_crowd(
    scheduler: ManualInstance, moment: datetime
) -> None:
    """What is due before it would wait for a second and a half."""
    worker = scheduler.engine.worker
    worker._crowds = crowds(scheduler)
    scheduler.engine.slots._pace.ran(0.2)
    scheduler.clock.move_to(moment - SECOND)
    await worker.run_once()
    assert worker._crowds.share == COUNT
    await worker.run_once()
    assert await states(scheduler) == {ExecutionState.QUEUED: COUNT}


async def test_a_crowd_takes_no_room_from_what_is_due_meanwhile(
    scheduler: ManualInstance, moment: datetime
) -> None:
    started = Started(scheduler, 1)
    await claim_ahead(scheduler, moment, early=True)
    slots = scheduler.engine.slots
    assert slots.waiting == COUNT
    assert slots.room == BATCH, "for the streams"
    await scheduler.add("now", Immediate(), "work")
    await scheduler.engine.planner.run_once()
    await scheduler.engine.worker.run_once()
    await asyncio.wait_for(started.all.wait(), 20)
    assert started.at == [scheduler.clock.now()]
    assert scheduler.clock.now() < moment


async def test_a_killed_one_starts_nothing_of_what_it_had_claimed_ahead(
    scheduler: ManualInstance, moment: datetime
) -> None:
    await claim_ahead(scheduler, moment)
    slots = scheduler.engine.slots
    scheduler.clock.move_to(moment)
    slots._coming._ring()
    assert slots.busy > 0
    assert slots.waiting > 0
    await scheduler.kill()
    slots._coming._ring()
    assert slots.waiting == 0
    assert not [task for task in asyncio.all_tasks() if "Slots._work" in repr(task)]


async def test_who_waits_for_one_moment_comes_in_the_order_of_the_claims(
    scheduler: ManualInstance, moment: datetime
) -> None:
    """Thousands of them, in one go."""
    came: list[object] = []
    coming = Coming(scheduler.clock, came.extend)
    await claim_ahead(scheduler, moment)
    held = list(scheduler.engine.leases)
    assert coming.add(held) == []
    scheduler.clock.move_to(moment)
    coming._ring()
    assert came == held
    assert len(coming) == 0
