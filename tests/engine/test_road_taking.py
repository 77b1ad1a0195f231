"""Off the road: messages are hints, the claim decides, and slots are never pledged twice."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import Connection

from noonday.domain.errors import Unavailable
from noonday.domain.execution import ExecutionId, Road
from noonday.domain.outcome import Outcome
from noonday.domain.schedule import Once
from noonday.engine.engine import Role
from noonday.engine.slots import Slots
from noonday.ports import Delivery, Run
from noonday.store import executions, instances
from noonday.store.executions import ClaimOrder, Taken
from noonday.store.notices import PLEDGED, WORK, tell
from noonday.testing import Faults
from tests.engine.road_steps import (
    CLOCK,
    Target,
    add,
    completed,
    force,
    machine,
    settled,
    until,
)
from tests.engine.taking_steps import WORKER, a_road, by_hand, put


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


async def test_room_that_comes_while_messages_go_back_is_not_missed(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    road, room = a_road(), [1]
    monkeypatch.setattr(Slots, "room", property(lambda _: room[0]))
    async with by_hand(db_url, road, slots=1) as one:
        execution_id = await put(one, road, await add(one.db))
        queue, slots, taker = one.engine.streams._queue, one.engine.slots, one.engine.taker
        assert queue is not None
        take, hand_back = queue.take, queue.hand_back

        async def into_full_hands(limit: int, wait: timedelta) -> list[Delivery]:
            found = await take(limit, wait)
            room[0] = 0
            return found

        async def meanwhile(deliveries: Collection[Delivery]) -> None:
            await hand_back(deliveries)
            room[0] = 1
            slots._offer_room()

        monkeypatch.setattr(queue, "take", into_full_hands)
        monkeypatch.setattr(queue, "hand_back", meanwhile)
        await taker.run_once()  # takes it, and gives it back for want of room
        taker.wake.clear()
        room[0] = 0
        taker._receive(await take(1, timedelta()))
        await taker.run_once()
        assert taker.wake.is_set(), "nobody would look again"
        await taker.run_once()
        await until(lambda: one.target.ran == [execution_id], "the run")


async def test_with_much_at_hand_it_claims_many_at_a_time(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room comes run by run; a claim for each would cost more than they do."""
    road, sated = a_road(), True
    monkeypatch.setattr(Slots, "_sated", property(lambda _: sated))
    async with by_hand(db_url, road) as one:
        job, taker = await add(one.db), one.engine.taker
        first = await put(one, road, job)
        await taker.run_once()
        await until(lambda: one.target.ran == [first], "the run")
        taker._claimed_at = CLOCK.monotonic() + 60
        more = [await put(one, road, job) for _ in range(3)]
        wish = await taker.run_once()
        assert isinstance(wish, timedelta)
        assert timedelta(seconds=50) < wish <= timedelta(seconds=60.05)
        assert len(road.waiting()) == 3
        taker.wake.clear()
        one.engine.slots.ask(hurried := asyncio.Event())
        one.engine.slots._offer_room()
        assert hurried.is_set(), "the worker of the other road would wait for nothing"
        assert not taker.wake.is_set()
        sated = False
        one.engine.slots._offer_room()
        assert taker.wake.is_set()
        await taker.run_once()
        await until(lambda: set(one.target.ran) == {first, *more}, "the others")
        assert CLOCK.monotonic() >= taker._claimed_at > CLOCK.monotonic() - 20


async def test_what_could_not_be_claimed_is_asked_for_again_however_much_is_at_hand(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    road = a_road()
    monkeypatch.setattr(Slots, "_sated", property(lambda _: True))
    async with by_hand(db_url, road) as one:
        execution_id = await put(one, road, await add(one.db))
        taker, queue = one.engine.taker, one.engine.streams._queue
        assert queue is not None
        taker._receive(await queue.take(1, timedelta()))
        taker._claimed_at = CLOCK.monotonic() + 60
        await taker.run_once()
        await until(lambda: one.target.ran == [execution_id], "the run")


async def test_a_worker_hears_of_what_is_pledged_only_where_the_streams_cannot_be_used(
    db_url: str,
) -> None:
    road = a_road()
    async with by_hand(db_url, road, instance_id="one") as one:
        worker, all_are_told = one.engine.worker, one.db.subscribe(PLEDGED)

        def say(conn: Connection, topic: str) -> None:
            tell(conn, PLEDGED)
            tell(conn, topic)

        async def hears(topic: str) -> bool:
            worker.wake.clear()
            all_are_told.clear()
            await one.db.write(partial(say, topic=topic))
            async with asyncio.timeout(20):
                await all_are_told.wait()
            await asyncio.sleep(0)  # whoever else was told in the same breath
            return worker.wake.is_set()

        assert not await hears(PLEDGED)
        assert await hears(WORK)
        road.down("one")
        await one.engine.streams.run_once()
        assert not one.engine.streams.up
        assert await hears(PLEDGED)


async def test_a_worker_that_alone_is_cut_off_runs_what_others_pledge(db_url: str) -> None:
    """Nobody but it has hands, and whoever plans does not know that nobody takes the messages."""
    road = a_road()
    road.down("cut off")
    async with (
        machine(db_url, queue=road.queue, roles=frozenset({Role.SCHEDULER}), instance_id="planner") as one,
        machine(db_url, queue=road.queue, roles=WORKER, instance_id="cut off") as two,
        two.running(),
        one.running(),
    ):
        await until(lambda: not two.engine.streams.up, "it knows that it is cut off")
        await until(lambda: bool(one.engine.feeder.lanes), "pledges are taken")
        await add(one.db, Once(run_at=CLOCK.now() + timedelta(seconds=1)))
        await until(lambda: len(two.target.ran) == 1, "the run", seconds=10)
        assert one.engine.counters.enqueued == 1


async def test_a_message_that_is_early_waits_for_its_moment(db_url: str) -> None:
    road = a_road()
    async with machine(db_url, queue=road.queue, roles=WORKER) as one, one.running():
        job = await add(one.db)
        early = await put(one, road, job, ahead=0.4)
        due = await put(one, road, job)
        await until(lambda: len(one.target.ran) == 2, "both")
        assert one.target.ran == [due, early]
        assert one.target.late[1] >= 0.4
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

        async def down(work: object, **how: bool) -> None:
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
