"""The road that ships for users' tests, and instances moved by hand that share it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from random import Random

import pytest

from noonday.domain.errors import RoadDown
from noonday.domain.execution import ExecutionId, ExecutionState
from noonday.domain.job import Lane
from noonday.domain.schedule import Interval, IntervalUnit
from noonday.ports import Delivery, Parcel
from noonday.testing import Faults, FlakyQueue, FlakyRoad, ManualClock, ManualInstance

SECOND = timedelta(seconds=1)
NOT_AT_ALL = timedelta()
EVERY_TEN = Interval(count=10, unit=IntervalUnit.SECONDS)


def parcel(name: str, lane: Lane = Lane.NORMAL) -> Parcel:
    return Parcel(lane, ExecutionId(name))


def names(found: Sequence[Delivery]) -> list[str]:
    return [one.execution_id for one in found]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def road(clock: ManualClock) -> FlakyRoad:
    return FlakyRoad(clock)


@pytest.fixture
def one(road: FlakyRoad) -> FlakyQueue:
    return road.queue("one")


@pytest.fixture
def other(road: FlakyRoad) -> FlakyQueue:
    return road.queue("other")


class TestAGoodRoad:
    async def test_it_delivers_each_parcel_to_one_of_them(self, one: FlakyQueue, other: FlakyQueue) -> None:
        await one.put([parcel("a"), parcel("b"), parcel("c")])
        first, second = await one.take(2, NOT_AT_ALL), await other.take(2, NOT_AT_ALL)
        assert (names(first), names(second)) == (["a", "b"], ["c"])
        assert await one.take(2, NOT_AT_ALL) == []

    async def test_it_serves_high_lanes_first_and_low_ones_in_the_end(self, one: FlakyQueue) -> None:
        await one.put([parcel(f"low-{n}", Lane.LOW) for n in range(2)])
        await one.put([parcel(f"high-{n}", Lane.HIGH) for n in range(20)])
        taken = names(await one.take(16, NOT_AT_ALL))
        assert taken[:7] == [f"high-{n}" for n in range(7)]
        assert [name for name in taken if name.startswith("low")] == ["low-0", "low-1"]

    async def test_what_is_acknowledged_is_gone(self, one: FlakyQueue, road: FlakyRoad) -> None:
        await one.put([parcel("a")])
        [taken] = await one.take(1, NOT_AT_ALL)
        assert (await one.depths())[Lane.NORMAL] == 1
        await one.ack([taken])
        await one.ack([taken])
        assert len(road) == 0

    async def test_what_is_handed_back_is_free_for_others(self, one: FlakyQueue, other: FlakyQueue) -> None:
        await one.put([parcel("a")])
        await one.hand_back(await one.take(1, NOT_AT_ALL))
        assert names(await other.take(1, NOT_AT_ALL)) == ["a"]
        assert await one.mine() == []

    async def test_it_takes_silence_and_only_silence_for_abandonment(
        self, one: FlakyQueue, other: FlakyQueue, clock: ManualClock
    ) -> None:
        await one.put([parcel("kept"), parcel("left")])
        kept, left = await one.take(2, NOT_AT_ALL)
        clock.advance(seconds=8)
        await one.keep([kept])
        clock.advance(seconds=4)
        assert await other.abandoned(10 * SECOND, 10) == [left]
        assert await other.mine() == [left]
        assert await one.mine() == [kept]

    async def test_it_goes_round_where_it_stopped(
        self, one: FlakyQueue, other: FlakyQueue, clock: ManualClock
    ) -> None:
        await one.put([parcel(name) for name in "abc"])
        await one.take(3, NOT_AT_ALL)
        clock.advance(seconds=20)
        seen = [names(await other.abandoned(SECOND, 2)) for _ in range(2)]
        assert seen == [["a", "b"], ["c"]]

    async def test_it_misses_what_is_neither_waiting_nor_in_hands(self, one: FlakyQueue) -> None:
        await one.put([parcel("waits"), parcel("held")])
        await one.take(1, NOT_AT_ALL)
        asked = [parcel("waits"), parcel("held"), parcel("lost")]
        assert await one.missing(asked) == [parcel("lost")]

    async def test_it_waits_for_what_comes_if_it_is_told_to(self, clock: ManualClock) -> None:
        road = FlakyRoad(clock, waits=True)
        assert await road.queue("one").take(1, timedelta(milliseconds=1)) == []


class TestABadRoad:
    async def test_it_loses_everything_it_is_told_to(self, one: FlakyQueue, road: FlakyRoad) -> None:
        road.faults = Faults(lose=1.0)
        await one.put([parcel("a")])
        assert await one.take(1, NOT_AT_ALL) == []
        assert await one.missing([parcel("a")]) == [parcel("a")]

    async def test_it_doubles(self, one: FlakyQueue, road: FlakyRoad) -> None:
        road.faults = Faults(double=1.0)
        await one.put([parcel("a")])
        first, second = await one.take(9, NOT_AT_ALL)
        assert first.execution_id == second.execution_id
        assert first.receipt != second.receipt

    async def test_it_delivers_late(self, clock: ManualClock) -> None:
        road = FlakyRoad(clock, chance=lambda: 0.5, faults=Faults(late=4 * SECOND))
        one = road.queue("one")
        await one.put([parcel("a")])
        assert await one.take(1, NOT_AT_ALL) == []
        clock.advance(seconds=2)
        assert names(await one.take(1, NOT_AT_ALL)) == ["a"]

    async def test_it_forgets_everything_and_whoever_asks_finds_out(
        self, one: FlakyQueue, road: FlakyRoad
    ) -> None:
        await one.put([parcel("a"), parcel("b")])
        [held] = await one.take(1, NOT_AT_ALL)
        road.flush()
        assert one.forgotten == 0
        assert await one.take(1, NOT_AT_ALL) == []
        assert one.forgotten == 1
        await one.ack([held])

    async def test_it_is_down_for_one_or_for_all(
        self, one: FlakyQueue, other: FlakyQueue, road: FlakyRoad
    ) -> None:
        road.down("one")
        with pytest.raises(RoadDown):
            await one.put([parcel("a")])
        await other.put([parcel("b")])
        road.down()
        with pytest.raises(RoadDown):
            await other.take(1, NOT_AT_ALL)
        road.up()
        assert names(await one.take(9, NOT_AT_ALL)) == ["b"]

    async def test_it_obeys_and_does_not_answer(self, one: FlakyQueue, road: FlakyRoad) -> None:
        await one.put([parcel("a")])
        road.faults = Faults(lose_answers=1.0)
        with pytest.raises(RoadDown):
            await one.take(1, NOT_AT_ALL)
        road.behave()
        assert names(await one.mine()) == ["a"]

    async def test_it_does_not_hear(self, one: FlakyQueue, road: FlakyRoad) -> None:
        await one.put([parcel("a")])
        road.faults = Faults(lose_acks=1.0)
        await one.ack(await one.take(1, NOT_AT_ALL))
        assert names(await one.mine()) == ["a"]

    async def test_the_same_chance_brings_the_same_misfortunes(self, clock: ManualClock) -> None:
        seen = []
        for _ in range(2):
            road = FlakyRoad(clock, Random(7).random, faults=Faults(lose=0.5, double=0.5))
            queue = road.queue("one")
            await queue.put([parcel(str(number)) for number in range(20)])
            seen.append(names(await queue.take(99, NOT_AT_ALL)))
        assert seen[0] == seen[1]
        assert 0 < len(set(seen[0])) < 20


class TestInstancesOnARoad:
    @pytest.fixture
    async def scheduler(self, db_url: str) -> AsyncIterator[ManualInstance]:
        clock = ManualClock()
        async with ManualInstance(db_url, clock=clock, road=FlakyRoad(clock)) as made:
            yield made

    @pytest.fixture
    def ran(self, scheduler: ManualInstance) -> list[float]:
        began = scheduler.clock.now()
        seen: list[float] = []

        @scheduler.task
        async def work() -> None:
            seen.append((scheduler.clock.now() - began).total_seconds())

        return seen

    async def test_version_two_takes_it_on_the_dot(self, scheduler: ManualInstance, ran: list[float]) -> None:
        assert scheduler.road is not None
        await scheduler.add("job", EVERY_TEN, "work", scheduler_version=2)
        await scheduler.tick(seconds=35)
        assert ran == [10, 20, 30]
        assert scheduler.engine.counters.enqueued == 3
        assert len(scheduler.road) == 0

    async def test_version_one_never_touches_it(self, scheduler: ManualInstance, ran: list[float]) -> None:
        await scheduler.add("job", EVERY_TEN, "work", scheduler_version=1)
        await scheduler.tick(seconds=35)
        assert ran == [10, 20, 30]
        assert scheduler.engine.counters.enqueued == 0

    @pytest.mark.parametrize("fault", ["down", "flush", "lose"])
    async def test_nothing_is_lost_with_the_road(
        self, scheduler: ManualInstance, ran: list[float], fault: str
    ) -> None:
        road = scheduler.road
        assert road is not None
        await scheduler.add("job", EVERY_TEN, "work", scheduler_version=2)
        await scheduler.tick(seconds=15)
        match fault:
            case "down":
                road.down()
            case "lose":
                road.faults = Faults(lose=1.0)
        await scheduler.tick(seconds=4.9)
        if fault == "flush":
            scheduler.pause()
            await scheduler.engine.feeder.run_once()
            scheduler.clock.advance(seconds=0.2)
            road.flush()
            scheduler.resume()
        await scheduler.tick(seconds=6)
        road.behave()
        await scheduler.tick(seconds=20)
        runs = await scheduler.history("job")
        done = [run for run in runs if run.state is ExecutionState.COMPLETED]
        assert len(done) == len(ran) == 4
        assert ran[1] - 20 <= 5.1

    async def test_another_takes_over_what_the_killed_one_held(
        self, scheduler: ManualInstance, ran: list[float]
    ) -> None:
        @scheduler.task
        async def slow() -> None:
            await scheduler.clock.sleep(5)
            ran.append(-1)

        assert scheduler.road is not None
        async with scheduler.another() as second:
            second.pause()
            await scheduler.add("job", EVERY_TEN, "slow", scheduler_version=2)
            await scheduler.tick(seconds=12)
            await scheduler.kill()
            second.resume()
            await second.tick(seconds=127)
            [first, *_] = await scheduler.history("job")
            assert (first.state, first.losses) == (ExecutionState.COMPLETED, 1)
            assert len(scheduler.road) == 0

    async def test_a_new_leader_follows_when_the_lease_of_the_dead_one_is_over(self) -> None:
        began: list[float] = []
        async with ManualInstance(leader_ttl=timedelta(seconds=9)) as first:

            @first.task
            async def work() -> None:
                began.append(first.clock.monotonic())

            async with first.another() as second:
                await first.add("job", EVERY_TEN, "work")
                await first.tick(seconds=12)
                assert (first.engine.elector.leading, second.engine.elector.leading) == (True, False)
                await first.kill()
                await second.tick(seconds=20)
                assert second.engine.elector.leading
                assert second.engine.elector.term == 2
        assert began[0] == 10
        assert 20 < began[1] < 12 + 9 + 0.3, "the lease was renewed at 12 and ran out at 21"
        assert began[2] == 30
