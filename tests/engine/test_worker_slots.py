"""The worker: as many at once as it has slots, the high lane first, and nothing held that cannot start."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import psycopg
import pytest
from sqlalchemy import Connection

from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Lane, Overlap, OverlapPolicy
from noonday.domain.schedule import Cron, Immediate, Interval, IntervalUnit, Manual, Once
from noonday.domain.target import PythonTarget
from noonday.engine.pace import Pace
from noonday.engine.slots import Slots
from noonday.store import history
from noonday.targets.tasks import current
from noonday.testing import ManualInstance
from tests.factories import at

ALLOW = OverlapPolicy(overlap=Overlap.ALLOW)


async def test_it_runs_no_more_at_once_than_it_has_slots(db_url: str) -> None:
    async with ManualInstance(db_url, slots=3) as scheduler:
        running = most = 0

        @scheduler.task
        async def work() -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await scheduler.clock.sleep(10)
            running -= 1

        for number in range(8):
            await scheduler.add(f"job-{number}", Immediate(), "work")
        await scheduler.run_once()
        assert running == scheduler.engine.slots.busy == 3
        await scheduler.tick(seconds=30)
        assert most == 3
        page = await scheduler.db.read(history.page)
        assert {run.state for run in page.items} == {ExecutionState.COMPLETED}
        assert page.total == 8


async def test_it_starts_the_next_one_as_soon_as_a_slot_is_free(db_url: str) -> None:
    async with ManualInstance(db_url, slots=1) as scheduler:
        started: list[datetime] = []

        @scheduler.task
        async def work() -> None:
            started.append(scheduler.clock.now())
            await scheduler.clock.sleep(7)

        for number in range(3):
            await scheduler.add(f"job-{number}", Immediate(), "work")
        await scheduler.tick(seconds=20)
        assert [moment.second for moment in started] == [0, 7, 14]


async def test_it_serves_the_high_lane_before_the_low_one(db_url: str) -> None:
    async with ManualInstance(db_url, slots=1) as scheduler:
        order: list[str] = []

        @scheduler.task
        async def work(name: str) -> None:
            order.append(name)
            await scheduler.clock.sleep(1)

        for lane in (Lane.LOW, Lane.NORMAL, Lane.HIGH):
            for number in range(2):
                target = PythonTarget(task="work", args=(lane.name,))
                await scheduler.add(f"{lane.name}-{number}", Immediate(), target, lane=lane)
        await scheduler.tick(seconds=10)
        assert order == ["HIGH", "HIGH", "NORMAL", "NORMAL", "LOW", "LOW"]


async def test_it_serves_the_low_lane_in_the_end_however_much_is_high(db_url: str) -> None:
    async with ManualInstance(db_url, slots=1) as scheduler:

        @scheduler.task
        async def work() -> None:
            await scheduler.clock.sleep(2)

        await scheduler.add(
            "busy", Interval(count=1, unit=IntervalUnit.SECONDS), "work", lane=Lane.HIGH, overlapping=ALLOW
        )
        await scheduler.add("patient", Once(run_at=at("2027-01-01T12:00:05Z")), "work", lane=Lane.LOW)
        await scheduler.tick(minutes=3)
        [low] = await scheduler.history("patient")
        assert low.state is ExecutionState.COMPLETED
        assert low.started_at is not None
        assert low.started_at - low.scheduled_for >= timedelta(seconds=60)


async def test_it_wishes_to_be_woken_when_the_next_one_is_available(
    scheduler: ManualInstance,
) -> None:
    await scheduler.add("later", Once(run_at=at("2027-01-01T12:00:01.500Z")), "work")
    await scheduler.engine.planner.run_once()
    assert await scheduler.engine.worker.run_once() == at("2027-01-01T12:00:01.500Z")


async def test_it_sleeps_for_good_when_there_is_nothing(scheduler: ManualInstance) -> None:
    assert await scheduler.engine.worker.run_once() is None


async def test_it_is_woken_by_work_that_somebody_asks_for(scheduler: ManualInstance) -> None:
    done = asyncio.Event()

    @scheduler.task
    async def work() -> None:
        done.set()

    await scheduler.add("asked", Manual(), "work")
    motion = asyncio.create_task(scheduler.engine.worker.run())
    async with asyncio.timeout(20):
        await scheduler.jobs.force_run("asked")
        await done.wait()
    motion.cancel()
    with pytest.raises(asyncio.CancelledError):
        await motion


def test_it_claims_nothing_ahead_before_it_knows_that_runs_are_short() -> None:
    pace = Pace(slots=10, most=500)
    assert pace.ahead == 0
    for _ in range(500):
        pace.ran(0.0005)
    assert pace.ahead == 1000
    pace.ran(5.0)
    assert pace.ahead == 0


def test_the_first_runs_of_all_are_believed_sooner() -> None:
    """A backlog waits for what they tell; after a disappointment that would be rash."""
    fresh, disappointed = Pace(slots=10, most=500), Pace(slots=10, most=500)
    disappointed.disappoint()
    for pace in (fresh, disappointed):
        for _ in range(6):
            pace.ran(0.0005)
    assert fresh.ahead > 10
    assert disappointed.ahead == 0


@pytest.mark.parametrize(
    ("at_hand", "room", "sated"), [(0, 500, False), (500, 500, False), (750, 260, False), (800, 210, True)]
)
async def test_a_little_room_is_left_until_it_is_more_where_much_is_at_hand(
    scheduler: ManualInstance, at_hand: int, room: int, sated: bool
) -> None:
    slots = scheduler.engine.slots
    assert not slots._sated, "nothing is known of how long runs take"
    for _ in range(100):
        slots._pace.ran(0.0)
    assert slots._pace.ahead == 1000
    slots._coming._count = at_hand
    assert (slots.room, slots._sated) == (room, sated)


async def test_it_hands_back_what_it_claimed_ahead_and_cannot_start(db_url: str) -> None:
    async with ManualInstance(db_url, slots=1) as scheduler:
        quick = True

        @scheduler.task
        async def work() -> None:
            if not quick:
                await scheduler.clock.sleep(300)

        for _ in range(200):
            scheduler.engine.slots._pace.ran(0.0)
        quick = False
        for number in range(5):
            await scheduler.add(f"job-{number}", Immediate(), "work")
        await scheduler.run_once()
        assert scheduler.engine.slots.busy == 1
        assert len(scheduler.engine.leases) == 5  # four wait for the slot that they were promised

        await scheduler.tick(seconds=2)
        assert len(scheduler.engine.leases) == 1
        page = await scheduler.db.read(history.page)
        states = sorted(run.state for run in page.items)
        assert states == ["queued"] * 4 + ["running"]
        waiting = next(run for run in page.items if run.state is ExecutionState.QUEUED)
        assert [one.outcome for one in await scheduler.attempts(waiting)] == ["released"]
        assert (waiting.failures, waiting.losses) == (0, 0)


async def test_it_drains_by_finishing_what_runs_and_claiming_no_more(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(5)

    await scheduler.add("long", Immediate(), "work")
    await scheduler.run_once()
    drained = asyncio.create_task(scheduler.engine.slots.drain())
    await asyncio.sleep(0)
    await scheduler.add("late", Immediate(), "work")
    await scheduler.tick(seconds=4)
    assert not drained.done()
    await scheduler.tick(seconds=1)
    async with asyncio.timeout(20):
        await drained
    [done] = await scheduler.history("long")
    [waiting] = await scheduler.history("late")
    assert (done.state, waiting.state) == (ExecutionState.COMPLETED, ExecutionState.QUEUED)

    scheduler.engine.slots.resume()
    await scheduler.tick(seconds=5)
    [waiting] = await scheduler.history("late")
    assert waiting.state is ExecutionState.COMPLETED


async def test_it_releases_what_does_not_finish_and_another_runs_it(
    scheduler: ManualInstance,
) -> None:
    finish = False

    @scheduler.task
    async def work() -> None:
        if not finish:
            await scheduler.clock.sleep(10_000)

    await scheduler.add("long", Immediate(), "work")
    await scheduler.run_once()
    drained = asyncio.create_task(scheduler.engine.slots.drain())
    await asyncio.sleep(0)
    scheduler.engine.slots.release()
    finish = True
    async with scheduler.another() as other:
        await scheduler.run_once()
        async with asyncio.timeout(20):
            await drained
        await other.run_once()
        [run] = await scheduler.history("long")
        assert run.state is ExecutionState.COMPLETED
        assert run.instance_id == "manual-2"
        assert [one.outcome for one in await scheduler.attempts(run)] == ["released", "completed"]
        assert (run.failures, run.losses) == (0, 0)


async def test_it_never_overlaps_where_the_job_forbids_it_whatever_the_number_of_instances(
    scheduler: ManualInstance,
) -> None:
    running: list[int] = [0]

    @scheduler.task
    async def work() -> None:
        running[0] += 1
        assert running[0] == 1
        await scheduler.clock.sleep(25)
        running[0] -= 1

    await scheduler.add("slow", Interval(count=10, unit=IntervalUnit.SECONDS), "work")
    async with scheduler.another():
        await scheduler.tick(minutes=2)
        rows: list[Execution] = await scheduler.history("slow")
        past = [row for row in rows if row.scheduled_for <= scheduler.clock.now()]
        assert {row.state for row in past} <= {
            ExecutionState.COMPLETED,
            ExecutionState.SKIPPED,
            ExecutionState.RUNNING,
        }
        assert sum(row.state is ExecutionState.COMPLETED for row in past) == 3
        assert all(row.error is None for row in past)


async def test_it_fires_every_instant_once_with_two_instances(scheduler: ManualInstance) -> None:
    seen: list[tuple[str, datetime]] = []

    @scheduler.task
    async def work() -> None:
        seen.append((current().job_name, current().scheduled_for))

    for number in range(10):
        await scheduler.add(f"cron-{number}", Cron(expression=f"{number} * * * *"), "work")
    async with scheduler.another():
        await scheduler.tick(hours=5)
    assert len(seen) == len(set(seen)) == 50


async def test_with_much_at_hand_it_claims_many_at_a_time_unless_there_is_news(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    @scheduler.task
    def work() -> None:
        ran.append(current().job_name)

    worker = scheduler.engine.worker
    await scheduler.add("first", Immediate(), "work")
    await scheduler.run_once()
    monkeypatch.setattr(Slots, "_sated", property(lambda _: True))
    worker._claimed_at = scheduler.clock.monotonic()
    worker.wake.clear()
    assert await worker.run_once() == timedelta(seconds=0.05)

    await scheduler.add("second", Immediate(), "work")
    await scheduler.engine.planner.run_once()
    async with asyncio.timeout(20):
        await worker.wake.wait()  # until the plan was heard of
    await worker.run_once()
    assert [run.state for run in await scheduler.history("second")] == [ExecutionState.RUNNING]

    worker.wake.clear()
    assert await worker.run_once() == timedelta(seconds=0.05)
    monkeypatch.setattr(Slots, "_sated", property(lambda _: False))
    scheduler.engine.slots._offer_room()
    assert worker.wake.is_set()
    await scheduler.run_once()
    assert ran == ["first", "second"]


async def test_a_claim_waits_for_ends_only_where_it_found_nothing_but_held_jobs(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ManualInstance(postgres_url) as scheduler:
        done = asyncio.Event()

        @scheduler.task
        async def work() -> None:
            done.set()

        waited: list[bool] = []
        write = scheduler.db.write

        async def noted(work: Callable[[Connection], object], *, serially: bool = False) -> object:
            if "claim_and_look_ahead" in repr(work):
                waited.append(serially)
            return await write(work, serially=serially)

        await scheduler.add("job", Immediate(), "work")
        await scheduler.engine.planner.run_once()
        monkeypatch.setattr(scheduler.db, "write", noted)
        with psycopg.connect(postgres_url) as other:
            other.execute("SELECT id FROM jobs FOR UPDATE")
            await scheduler.engine.worker.run_once()
            await scheduler.engine.worker.run_once()
            assert waited == [False, True]
            other.rollback()
        await scheduler.engine.worker.run_once()
        assert waited == [False, True, True]
        async with asyncio.timeout(20):
            await done.wait()
        scheduler.clock.advance(seconds=1)
        await scheduler.engine.worker.run_once()
        assert not waited[-1]
