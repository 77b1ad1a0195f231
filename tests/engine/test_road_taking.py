"""Off the road: messages are hints, the claim decides, and slots are never promised twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from noonday.domain.errors import Unavailable
from noonday.domain.execution import ExecutionId, ExecutionState, Road
from noonday.domain.job import Job, Lane
from noonday.domain.outcome import Accepted, Outcome
from noonday.engine.engine import Role
from noonday.ports import Delivery, Parcel, Run, Silence
from noonday.store import executions, instances
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Taken
from noonday.store.records import forced
from noonday.testing import Faults, FlakyRoad
from tests.engine.road_steps import (
    CLOCK,
    Machine,
    Target,
    add,
    completed,
    force,
    machine,
    rows,
    settled,
    until,
)

WORKER = frozenset({Role.WORKER})
LONG = timedelta(seconds=30)


def a_road() -> FlakyRoad:
    return FlakyRoad(CLOCK, waits=True)


async def promised(one: Machine, job: Job, ahead: float = 0.0) -> Parcel:
    now = CLOCK.now()
    row = replace(forced(job, now, None, None), available_at=now + timedelta(seconds=ahead))
    await one.db.write(lambda conn: executions.plan(conn, [row], {row.id}))
    return Parcel(job.lane, row.id)


async def put(one: Machine, road: FlakyRoad, job: Job, ahead: float = 0.0) -> ExecutionId:
    """A row that is promised, and its message at once, however early that is."""
    parcel = await promised(one, job, ahead)
    await road.queue("leader").put([parcel])
    return parcel.execution_id


@asynccontextmanager
async def by_hand(db_url: str, road: FlakyRoad, **config: Any) -> AsyncIterator[Machine]:
    """Nothing moves by itself but what runs."""
    async with machine(db_url, queue=road.queue, **config) as one:
        one.engine.slots.spawn = asyncio.get_running_loop().create_task
        yield one
        for held in one.engine.leases:
            if held.task is not None:
                held.task.cancel()
                await asyncio.gather(held.task, return_exceptions=True)


@dataclass
class Heard(Silence):
    taken: list[tuple[Lane, int]] = field(default_factory=list)
    again: list[tuple[Lane, int]] = field(default_factory=list)

    def dequeued(self, lane: Lane, count: int) -> None:
        self.taken.append((lane, count))

    def redelivered(self, lane: Lane, count: int) -> None:
        self.again.append((lane, count))


async def test_a_message_that_comes_twice_runs_once(db_url: str) -> None:
    road, target = a_road(), Target(takes=0.01)
    road.faults = Faults(double=1.0)
    async with (
        machine(db_url, queue=road.queue, target=target) as one,
        machine(db_url, queue=road.queue, target=target) as two,
        one.running(),
        two.running(),
    ):
        job = await add(one.db)
        await force(one.db, job, 40)
        assert completed(await settled(one.db, 40)) == 40
        assert len(target.ran) == 40
        await until(lambda: len(road) == 0, "an empty road", seconds=6)
        assert one.engine.counters.refused == two.engine.counters.refused == 0


async def test_both_roads_together_never_claim_more_than_there_are_slots(db_url: str) -> None:
    road = a_road()
    most: list[int] = []

    class Watched(Target):
        async def run(self, run: Run) -> Outcome:
            most.append(len(one.engine.leases))
            roads.append(run.claim.execution.road)
            return await super().run(run)

    roads: list[Road] = []
    async with machine(db_url, queue=road.queue, target=Watched(takes=0.12), slots=3) as one:
        old, new = await add(one.db, version=1), await add(one.db, version=2)
        await force(one.db, old, 25)
        await force(one.db, new, 25)
        async with one.running():
            assert completed(await settled(one.db, 50)) == 50
        assert one.target.most == 3
        # An ended run keeps its lease until its end is durable, which is not a claim too many.
        assert max(most) <= 6
        assert not one.target.twice
        half = roads[:25]
        assert half.count(Road.DATABASE) >= 6, half  # neither starves the other
        assert half.count(Road.STREAMS) >= 6, half


async def test_what_arrives_when_the_slots_were_taken_meanwhile_is_handed_back_at_once(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = a_road()
    async with by_hand(db_url, road, slots=1, target=Target(takes=60)) as one:
        taker = one.engine.taker
        old, new = await add(one.db, version=1), await add(one.db, version=2)
        execution_id = await put(one, road, new)
        take = one.engine.streams._queue.take  # type: ignore[union-attr]

        async def slow(limit: int, wait: timedelta) -> list[Delivery]:
            found = await take(limit, wait)
            await force(one.db, old)
            await one.engine.worker.run_once()  # the other claimer is faster
            return found

        monkeypatch.setattr(one.engine.streams._queue, "take", slow)
        await taker.run_once()
        assert one.engine.slots.busy == 1
        assert [message.execution_id for message in road.waiting()] == [execution_id]
        assert not road.held()
        await until(lambda: len(one.target.ran) == 1, "the other one runs")


async def test_while_the_other_claimer_is_on_its_way_messages_wait_for_what_it_leaves(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = a_road()
    async with by_hand(db_url, road, slots=1) as one:
        execution_id = await put(one, road, await add(one.db))
        with one.engine.slots.reserve() as room:
            assert room == 1
            assert await one.engine.taker.run_once() is None  # no room, nothing taken
            assert not road.held()
        assert one.engine.taker.wake.is_set()
        take = one.engine.streams._queue.take  # type: ignore[union-attr]
        with pytest.MonkeyPatch.context() as patch:
            reserving = one.engine.slots.reserve()

            async def slow(limit: int, wait: timedelta) -> list[Delivery]:
                found = await take(limit, wait)
                reserving.__enter__()
                return found

            patch.setattr(one.engine.streams._queue, "take", slow)
            await one.engine.taker.run_once()
        assert [message.execution_id for message in road.held()] == [execution_id]  # kept, not handed back
        reserving.__exit__(None, None, None)
        await one.engine.taker.run_once()
        await until(lambda: one.target.ran == [execution_id], "the run")


async def test_a_message_that_is_early_waits_for_its_moment(db_url: str) -> None:
    road = a_road()
    async with machine(db_url, queue=road.queue, roles=WORKER) as one, one.running():
        job = await add(one.db)
        await put(one, road, job, ahead=0.4)
        await put(one, road, job)
        await until(lambda: len(one.target.ran) == 2, "both")
        assert one.target.late[0] < 0.4 <= one.target.late[1] < 0.9
        await until(lambda: len(road) == 0, "an empty road", seconds=6)


async def test_a_drain_hands_back_what_is_not_decided_and_takes_no_more(db_url: str) -> None:
    road = a_road()
    async with (
        machine(db_url, queue=road.queue, roles=WORKER) as one,
        machine(db_url, queue=road.queue, roles=WORKER) as two,
    ):
        job = await add(one.db)
        async with one.running():
            execution_id = await put(one, road, job, ahead=3)
            await until(lambda: len(road.held()) == 1, "it is in the hands of the first")
            assert await one.engine.finish(timedelta(seconds=5))
            assert not road.held()
            late = await put(one, road, job)
            await asyncio.sleep(0.7)  # longer than a take waits
            assert not road.held()
            assert not one.target.ran
        async with two.running():
            await until(lambda: len(two.target.ran) == 2, "the second runs both")
            assert set(two.target.ran) == {execution_id, late}


async def test_resume_takes_up_the_road_again(db_url: str) -> None:
    road = a_road()
    async with machine(db_url, queue=road.queue, roles=WORKER) as one, one.running():
        job = await add(one.db)
        me = [one.engine.config.instance_id]
        await one.db.write(lambda conn: instances.want(conn, me, instances.DRAINING))
        await until(lambda: one.engine.slots.draining, "it drains")
        await put(one, road, job)
        await asyncio.sleep(0.7)  # longer than a take waits
        assert not one.target.ran
        await one.db.write(lambda conn: instances.want(conn, me, instances.RUNNING))
        await until(lambda: len(one.target.ran) == 1, "the run", seconds=5)


async def test_with_the_store_down_nothing_starts_and_no_message_is_lost(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = a_road()
    async with by_hand(db_url, road) as one:
        job = await add(one.db)
        for _ in range(3):
            await put(one, road, job)

        async def down(work: object) -> None:
            raise Unavailable("the store is down")

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(one.db, "write", down)
            for _ in range(4):
                with pytest.raises(Unavailable):
                    await one.engine.taker.run_once()
        assert len(road.held()) == 3
        assert not one.target.ran
        await one.engine.taker.run_once()
        await until(lambda: len(one.target.ran) == 3, "all of them")


async def test_one_row_that_cannot_be_claimed_harms_itself_alone(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = a_road()
    async with by_hand(db_url, road) as one:
        job = await add(one.db)
        bad = await put(one, road, job)
        good = [await put(one, road, job) for _ in range(3)]
        claim_these = executions.claim_these

        def claim(conn: Connection, order: ClaimOrder, ids: Collection[ExecutionId]) -> Taken:
            if bad in ids:
                raise ValueError("a row that nobody can read")
            return claim_these(conn, order, ids)

        monkeypatch.setattr(executions, "claim_these", claim)
        await one.engine.taker.run_once()
        await until(lambda: sorted(one.target.ran) == sorted(good), "the others")
        await one.engine.acker.run_once()
        assert bad not in {message.execution_id for message in road.held()}


async def test_a_new_process_of_the_same_name_goes_on_with_what_the_old_one_held(db_url: str) -> None:
    road = a_road()
    async with machine(db_url, queue=road.queue, roles=WORKER, instance_id="named", lease=LONG) as one:
        job = await add(one.db)
        execution_id = await put(one, road, job)
        assert len(await road.queue("named").take(5, timedelta())) == 1  # and dies before it claims
        async with one.running():
            await until(lambda: one.target.ran == [execution_id], "the run", seconds=5)
            await until(lambda: len(road) == 0, "an empty road", seconds=6)


async def test_what_a_dead_instance_held_is_taken_over_after_the_lease(db_url: str) -> None:
    road, heard = a_road(), Heard()
    lease = timedelta(seconds=1)
    async with machine(db_url, queue=road.queue, roles=WORKER, lease=lease) as one:
        one.engine.taker._telemetry = heard
        job = await add(one.db, lane=Lane.HIGH)
        done = await put(one, road, job)
        open_ = await put(one, road, job)
        assert len(await road.queue("dead").take(5, timedelta())) == 2
        await one.db.write(lambda conn: executions.request_cancel(conn, done, "test", CLOCK.now()))
        async with one.running():
            await until(lambda: one.target.ran == [open_], "the open one", seconds=5)
            await until(lambda: len(road) == 0, "an empty road", seconds=6)  # the finished one vanished
        assert one.engine.counters.rescued == 0
        assert heard.again == [(Lane.HIGH, 1)]


async def test_what_runs_on_a_living_lease_is_left_alone(db_url: str) -> None:
    """Promise 2: idle time on the road is no proof that somebody is dead."""
    road, target, lease = a_road(), Target(takes=3), timedelta(seconds=1)
    async with (
        machine(db_url, queue=road.queue, target=target, lease=lease) as one,
        machine(db_url, queue=road.queue, target=target, lease=lease) as two,
        one.running(),
        two.running(),
    ):
        await force(one.db, await add(one.db))
        await until(lambda: len(target.ran) == 1, "it runs")
        (message,) = road.held()
        holder, began = message.holder, message.touched_at
        await until(lambda: message.touched_at - began > 1.5, "its holder keeps it")
        assert (message.holder, len(road)) == (holder, 1)
        (run,) = await settled(one.db, 1)
        assert (run.state, run.attempt) == (ExecutionState.COMPLETED, 1)
        assert len(target.ran) == 1
        await until(lambda: len(road) == 0, "an empty road", seconds=6)


async def test_a_killed_instance_delays_its_runs_by_its_lease_and_the_road_ends_empty(db_url: str) -> None:
    road, lease = a_road(), timedelta(seconds=1)
    async with (
        machine(db_url, queue=road.queue, target=Target(takes=60), lease=lease) as one,
        machine(db_url, queue=road.queue, lease=lease) as two,
    ):
        job = await add(one.db)
        async with one.running():
            execution_ids = await force(one.db, job, 3)
            await until(lambda: len(one.target.ran) == 3, "they run at the first")
        async with two.running():
            found = await settled(two.db, 3, seconds=20)
            assert completed(found) == 3
            assert sorted(two.target.ran) == sorted(execution_ids)
            assert {(run.attempt, run.losses) for run in found} == {(2, 1)}
            await until(lambda: len(road) == 0, "an empty road", seconds=6)


async def test_a_lost_acknowledgement_is_harmless(db_url: str) -> None:
    road, lease = a_road(), timedelta(seconds=1)
    road.faults = Faults(lose_acks=1.0)
    async with machine(db_url, queue=road.queue, lease=lease) as one, one.running():
        await force(one.db, await add(one.db), 5)
        await settled(one.db, 5)
        assert len(road) == 5
        road.behave()
        await until(lambda: len(road) == 0, "an empty road", seconds=10)
        assert len(one.target.ran) == 5


async def test_a_run_that_goes_on_elsewhere_lives_by_its_heartbeats_and_not_on_the_road(db_url: str) -> None:
    road = a_road()
    elsewhere = Target(outcome=lambda run: Accepted(heartbeat=timedelta(minutes=5)))
    async with machine(db_url, queue=road.queue, target=elsewhere) as one, one.running():
        await force(one.db, await add(one.db))
        await until(lambda: len(elsewhere.ran) == 1, "it was given away")
        await until(lambda: len(road) == 0, "an empty road", seconds=6)
        (run,) = await rows(one.db)
        assert (run.state, run.remote) == (ExecutionState.RUNNING, True)


async def test_overdue_rows_on_an_empty_road_are_found_by_whoever_is_idle(db_url: str) -> None:
    """Nobody leads: force runs and retries of version 2 do not wait for the next election."""
    road = a_road()
    async with machine(db_url, queue=road.queue, roles=WORKER) as one, one.running():
        job = await add(one.db)
        await force(one.db, job)
        await promised(one, job)
        await until(lambda: len(one.target.ran) == 2, "both", seconds=15)
        assert min(one.target.late) >= 3
        assert one.engine.counters.rescued == 2


async def test_messages_are_counted_as_they_are_taken(db_url: str) -> None:
    road, heard = a_road(), Heard()
    async with by_hand(db_url, road) as one:
        one.engine.taker._telemetry = heard
        high, low = await add(one.db, lane=Lane.HIGH), await add(one.db, lane=Lane.LOW)
        for job in (high, high, low):
            await put(one, road, job)
        await one.engine.taker.run_once()
        assert (heard.taken, heard.again) == ([(Lane.HIGH, 2), (Lane.LOW, 1)], [])
        await until(lambda: len(one.target.ran) == 3, "all of them")


async def test_a_row_locked_by_another_transaction_is_asked_for_again(postgres_url: str) -> None:
    road = a_road()
    other = Database(postgres_url)
    try:
        async with machine(postgres_url, queue=road.queue, roles=WORKER) as one, one.running():
            job = await add(one.db)
            parcel = await promised(one, job)
            locked, free = asyncio.Event(), asyncio.Event()
            loop = asyncio.get_running_loop()

            def hold(conn: Any) -> None:
                conn.exec_driver_sql(f"SELECT 1 FROM jobs WHERE id = '{job.id}' FOR UPDATE")
                loop.call_soon_threadsafe(locked.set)
                asyncio.run_coroutine_threadsafe(free.wait(), loop).result(20)

            holding = asyncio.create_task(other.write(hold))
            await locked.wait()
            await road.queue("leader").put([parcel])
            await until(lambda: len(road.held()) == 1, "it is kept")
            await asyncio.sleep(0.2)
            assert not one.target.ran
            free.set()
            await holding
            await until(lambda: one.target.ran == [parcel.execution_id], "the run", seconds=5)
    finally:
        await other.close()
