"""Onto the road: promises at their moment, rows that nobody fed, and what the road lost."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import pytest
from structlog.testing import capture_logs

from noonday.clock import SystemClock
from noonday.domain.execution import Execution, ExecutionId, Road
from noonday.domain.job import Job, Lane
from noonday.domain.schedule import Interval, IntervalUnit
from noonday.engine import feeder as limits
from noonday.engine.counters import Counters
from noonday.engine.feeder import Feeder
from noonday.engine.finder import Finder, FinderConfig
from noonday.engine.loop import Wish
from noonday.engine.planner import Planner, PlannerConfig
from noonday.engine.streams import Streams
from noonday.ports import Delivery, Parcel, Promise, Silence
from noonday.store import executions, feeding
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from noonday.testing import FlakyQueue, FlakyRoad, ManualClock
from tests.engine.road_steps import ALLOW
from tests.factories import LEASE, NOON, a_job, an_execution, an_id
from tests.store.store_steps import MINUTE, SECOND, add, claim, look, plan

AHEAD = timedelta(seconds=2)


@dataclass
class Heard(Silence):
    """Telemetry that remembers what was put on the road."""

    put: list[tuple[Lane, int]] = field(default_factory=list)

    def enqueued(self, lane: Lane, count: int) -> None:
        self.put.append((lane, count))


@dataclass
class Leader:
    """The feeding side of an instance, driven by hand."""

    db: Database
    road: FlakyRoad
    clock: ManualClock
    name: str = "leader"
    term: int = 1

    def __post_init__(self) -> None:
        self.counters, self.heard = Counters(), Heard()
        self.queue: FlakyQueue = self.road.queue(self.name)
        self.streams = Streams(queue=self.queue, clock=self.clock)
        self.feeder = Feeder(
            clock=self.clock, streams=self.streams, counters=self.counters, telemetry=self.heard
        )
        self.finder = Finder(
            db=self.db,
            clock=self.clock,
            streams=self.streams,
            feeder=self.feeder,
            term=lambda: self.term,
            counters=self.counters,
            config=FinderConfig(lookahead=AHEAD, page=5, batch=4),
        )

    async def look(self) -> Wish:
        """As the loops do: the finder until it has no more to do at once, then the feeder."""
        while (wish := await self.finder.run_once()) == timedelta():
            pass
        await self.feeder.run_once()
        return wish

    async def back(self) -> None:
        self.clock.advance(seconds=3)
        assert await self.streams.run_once() is None

    async def lies_there(self) -> list[ExecutionId]:
        found = await self.queue.take(1000, timedelta())
        await self.queue.hand_back(found)
        return [one.execution_id for one in found]

    async def take(self) -> list[Delivery]:
        return await self.queue.take(1000, timedelta())

    async def work(self) -> None:
        """Somebody takes and runs all of it."""
        taken = await self.take()
        order = ClaimOrder(instance_id="w", limit=1000, now=self.clock.now(), lease=LEASE)
        ids = [one.execution_id for one in taken]
        await self.db.write(partial(executions.claim_these, order=order, ids=ids))
        await self.queue.ack(taken)


@pytest.fixture
async def leader(db: Database) -> Leader:
    clock = ManualClock(NOON)
    return Leader(db, FlakyRoad(clock), clock)


def a_row(
    db: Database, job: Job, when: datetime = NOON, *, promised: bool = False, **more: object
) -> Execution:
    row = an_execution(job=job, scheduled_for=when, road=Road.STREAMS, **more)
    db.write_now(lambda conn: executions.plan(conn, [row], {row.id} if promised else ()))
    return row


def a_promise(when: datetime, lane: Lane = Lane.NORMAL) -> Promise:
    return Promise(when, Parcel(lane, ExecutionId(an_id())))


class TestPromises:
    async def test_they_go_out_at_their_moment_and_not_before(self, leader: Leader) -> None:
        late, soon, now = (a_promise(NOON + n * SECOND) for n in (9, 1, 0))
        leader.feeder.promise([late, soon, now])
        assert leader.feeder.wake.is_set()
        assert await leader.feeder.run_once() == NOON + SECOND
        assert await leader.lies_there() == [now.parcel.execution_id]
        leader.clock.advance(microseconds=999_999)
        assert await leader.feeder.run_once() == NOON + SECOND
        assert len(leader.road) == 1
        leader.clock.advance(microseconds=1)
        assert await leader.feeder.run_once() == NOON + 9 * SECOND
        assert len(leader.road) == 2
        assert len(leader.feeder) == 1
        assert late.parcel.execution_id in leader.feeder
        assert soon.parcel.execution_id not in leader.feeder

    async def test_all_that_are_due_go_in_one_call(
        self, leader: Leader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[int] = []
        put = leader.queue.put

        async def counted(parcels: list[Parcel]) -> None:
            calls.append(len(parcels))
            await put(parcels)

        monkeypatch.setattr(leader.queue, "put", counted)
        leader.feeder.promise(a_promise(NOON, lane) for lane in Lane for _ in range(100))
        assert await leader.feeder.run_once() is None
        assert calls == [300]
        assert sorted(leader.heard.put) == [(lane, 100) for lane in Lane]
        assert leader.counters.enqueued == 300

    async def test_on_the_real_clock_they_are_exact(self) -> None:
        clock = SystemClock()
        road = FlakyRoad(clock)
        arrived: list[float] = []
        streams = Streams(queue=road.queue("one"), clock=clock)
        feeder = Feeder(clock=clock, streams=streams, counters=Counters(), telemetry=Silence())
        start = clock.now() + timedelta(milliseconds=100)
        moments = [start + timedelta(milliseconds=20 * n) for n in range(10)]
        feeder.promise(a_promise(moment) for moment in moments)
        motion = asyncio.create_task(feeder.run())
        async with asyncio.timeout(20):
            while len(arrived) < len(moments):
                if len(road) > len(arrived):
                    arrived.append((clock.now() - moments[len(arrived)]).total_seconds())
                await asyncio.sleep(0.0005)
        motion.cancel()
        await asyncio.gather(motion, return_exceptions=True)
        assert min(arrived) >= 0
        assert sorted(arrived)[5] < 0.1

    async def test_when_the_road_is_down_they_are_left_to_their_rows(self, leader: Leader) -> None:
        leader.feeder.promise([a_promise(NOON), a_promise(NOON + MINUTE)])
        leader.road.down()
        await leader.feeder.run_once()
        assert not leader.streams.up
        assert not leader.feeder.lanes
        await leader.feeder.run_once()
        assert len(leader.feeder) == 0

    async def test_it_takes_no_promises_for_a_lane_that_is_full(
        self, leader: Leader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        assert leader.feeder.lanes == set()  # nobody has looked yet
        leader.feeder.measured({Lane.LOW: limits.MOST, Lane.HIGH: limits.MOST - 1})
        assert leader.feeder.lanes == {Lane.HIGH, Lane.NORMAL}
        leader.feeder.promise([a_promise(NOON, Lane.HIGH)])
        assert leader.feeder.lanes == {Lane.NORMAL}
        leader.feeder.measured({})
        assert leader.feeder.lanes == set(Lane)


class TestPlanner:
    async def test_it_promises_what_takes_the_streams_in_the_transaction_that_plans_it(
        self, leader: Leader
    ) -> None:
        schedule = Interval(count=1, unit=IntervalUnit.SECONDS)
        new, old = (
            a_job(schedule=schedule, scheduler_version=version, next_run_at=NOON + SECOND, lane=Lane.HIGH)
            for version in (2, 1)
        )
        add(leader.db, new, old)
        await leader.look()
        planner = Planner(
            db=leader.db,
            clock=leader.clock,
            counters=leader.counters,
            config=PlannerConfig(lookahead=AHEAD),
            feeder=leader.feeder,
            telemetry=leader.heard,
        )
        await planner.run_once()
        assert leader.counters.planned == 4
        assert len(leader.feeder) == 2
        assert leader.db.read_now(feeding.next_unfed_at) is None
        leader.clock.advance(seconds=1)
        await leader.feeder.run_once()
        (there,) = await leader.take()
        row = look(leader.db, there.execution_id)
        assert (row.job_id, row.scheduled_for, there.lane) == (new.id, NOON + SECOND, Lane.HIGH)

    async def test_it_promises_nothing_while_the_road_is_down(self, leader: Leader) -> None:
        job = a_job(scheduler_version=2, next_run_at=NOON)
        add(leader.db, job)
        leader.road.down()
        await leader.feeder.run_once()
        leader.feeder.promise([a_promise(NOON)])
        await leader.feeder.run_once()
        planner = Planner(
            db=leader.db,
            clock=leader.clock,
            counters=leader.counters,
            config=PlannerConfig(lookahead=AHEAD),
            feeder=leader.feeder,
            telemetry=leader.heard,
        )
        await planner.run_once()
        assert leader.counters.planned == 1
        assert leader.db.read_now(feeding.next_unfed_at) == NOON


class TestFinder:
    async def test_it_feeds_what_nobody_fed(self, leader: Leader) -> None:
        made = [a_job() for _ in range(11)]
        add(leader.db, *made)
        rows = [a_row(leader.db, job, NOON - SECOND) for job in made]
        await leader.look()
        assert sorted(await leader.lies_there()) == sorted(row.id for row in rows)
        await leader.look()
        assert len(leader.road) == 11

    async def test_it_feeds_ahead_and_sleeps_until_the_next_one_comes_near(self, leader: Leader) -> None:
        near, far = a_job(), a_job()
        add(leader.db, near, far)
        a_row(leader.db, near, NOON + SECOND)
        a_row(leader.db, far, NOON + 4 * SECOND)
        assert await leader.look() == 2 * SECOND
        assert len(leader.road) == 0
        assert len(leader.feeder) == 1
        leader.clock.advance(seconds=2)
        await leader.look()
        assert len(leader.road) == 1
        assert len(leader.feeder) == 1

    async def test_it_is_woken_by_work(self, leader: Leader) -> None:
        job = a_job()
        add(leader.db, job)
        await leader.look()
        motion = asyncio.create_task(leader.finder.run())
        feeding_ = asyncio.create_task(leader.feeder.run())
        a_row(leader.db, job)
        async with asyncio.timeout(20):
            while not len(leader.road):
                await asyncio.sleep(0.001)
        for task in (motion, feeding_):
            task.cancel()
        await asyncio.gather(motion, feeding_, return_exceptions=True)

    async def test_what_the_road_lost_is_put_there_anew_after_a_while(self, leader: Leader) -> None:
        made = [a_job() for _ in range(12)]
        add(leader.db, *made)
        rows = [a_row(leader.db, job) for job in made]
        await leader.look()
        deliveries = await leader.take()
        await leader.queue.ack(deliveries[:3] + deliveries[9:])
        leader.clock.advance(seconds=4)
        await leader.look()
        assert len(leader.road) == 6
        with capture_logs() as logs:
            leader.clock.advance(seconds=2)
            await leader.look()
            leader.clock.advance(seconds=5)
            await leader.look()
        assert len(leader.road) == 12
        assert leader.counters.restored == 6
        assert sum(line["count"] for line in logs if line["action"] == "restore") == 6
        assert {one.execution_id for one in await leader.queue.mine()} | set(await leader.lies_there()) == {
            row.id for row in rows
        }

    async def test_a_road_that_forgot_everything_is_filled_at_once(self, leader: Leader) -> None:
        made = [a_job(lane=Lane(n % 3 + 1)) for n in range(30)]
        add(leader.db, *made)
        rows = [a_row(leader.db, job) for job in made]
        await leader.look()
        assert len(leader.road) == 30
        leader.road.flush()
        assert await leader.take() == []  # it is noticed by whoever uses it
        await leader.look()
        assert sorted(await leader.lies_there()) == sorted(row.id for row in rows)

    async def test_after_the_road_came_back_it_looks_at_once(self, leader: Leader) -> None:
        made = [a_job() for _ in range(8)]
        add(leader.db, *made)
        early = [a_row(leader.db, job) for job in made[:4]]
        await leader.look()
        leader.road.down()
        with capture_logs():
            later = [a_row(leader.db, job, NOON + SECOND) for job in made[4:]]
            leader.clock.advance(seconds=6)
            await leader.look()
            assert not leader.streams.up
            assert await leader.finder.run_once() is None
        leader.road.flush()
        leader.road.up()
        await leader.back()
        await leader.look()
        assert sorted(await leader.lies_there()) == sorted(row.id for row in early + later)

    async def test_the_next_leader_keeps_the_promises_of_a_dead_one(self, leader: Leader) -> None:
        made = [a_job() for _ in range(3)]
        add(leader.db, *made)
        due, soon = a_row(leader.db, made[0]), a_row(leader.db, made[1], NOON + SECOND)
        plan(leader.db, an_execution(job=made[2], scheduled_for=NOON + MINUTE, road=Road.STREAMS))
        await leader.finder.run_once()  # marked, and dies before anything is put
        assert leader.db.read_now(feeding.next_unfed_at) == NOON + MINUTE
        heir = Leader(leader.db, leader.road, leader.clock, name="heir")
        await heir.look()
        assert await heir.lies_there() == [due.id]
        leader.clock.advance(seconds=1)
        await heir.feeder.run_once()
        assert await heir.lies_there() == [due.id, soon.id]
        assert heir.counters.restored == 2

    async def test_a_new_term_of_the_same_instance_looks_at_once_too(self, leader: Leader) -> None:
        job = a_job()
        add(leader.db, job)
        await leader.look()
        row = a_row(leader.db, job, promised=True)  # by somebody else, who died
        await leader.look()
        assert len(leader.road) == 0
        leader.term = 2
        await leader.look()
        assert await leader.lies_there() == [row.id]

    async def test_what_it_has_promised_itself_is_not_taken_for_lost(self, leader: Leader) -> None:
        job = a_job()
        add(leader.db, job)
        a_row(leader.db, job, NOON + SECOND)
        await leader.finder.run_once()
        leader.term = 2
        await leader.look()
        assert leader.counters.restored == 0
        assert len(leader.feeder) == 1

    async def test_a_second_feeder_does_no_harm(self, leader: Leader) -> None:
        made = [a_job() for _ in range(6)]
        add(leader.db, *made)
        rows = [a_row(leader.db, job) for job in made]
        other = Leader(leader.db, leader.road, leader.clock, name="other")
        await asyncio.gather(leader.look(), other.look())
        await asyncio.gather(leader.look(), other.look())
        assert {one.execution_id for one in await leader.take()} == {row.id for row in rows}

    async def test_what_runs_or_ended_is_never_put_back(self, leader: Leader) -> None:
        job = a_job(overlapping=ALLOW)
        add(leader.db, job)
        for n in range(3):
            a_row(leader.db, job, NOON - n * SECOND)
        await leader.look()
        await leader.queue.ack(await leader.take())
        assert len(claim(leader.db)) == 3
        leader.clock.advance(seconds=20)
        await leader.look()
        assert len(leader.road) == leader.counters.restored == 0

    async def test_a_full_lane_waits_in_its_rows_and_holds_up_no_other(
        self, leader: Leader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "MOST", 5)
        low, high = a_job(lane=Lane.LOW, overlapping=ALLOW), a_job(lane=Lane.HIGH, overlapping=ALLOW)
        add(leader.db, low, high)
        for n in range(12):
            a_row(leader.db, low, NOON - MINUTE - n * SECOND)
        await leader.look()
        leader.clock.advance(seconds=6)
        await leader.look()
        full = len(leader.road)
        assert 5 <= full <= 9  # the measure is taken every few seconds
        a_row(leader.db, high)
        assert await leader.look() == SECOND
        assert len(leader.road) == full + 1
        for _ in range(3):
            await leader.work()
            leader.clock.advance(seconds=6)
            await leader.look()
        assert leader.counters.restored == 0
        assert leader.db.read_now(feeding.next_unfed_at) is None

    async def test_it_names_the_living_when_it_tidies(
        self, leader: Leader, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        told: list[list[str]] = []

        async def tidy(alive: list[str]) -> None:
            told.append(alive)

        monkeypatch.setattr(leader.queue, "tidy", tidy)
        await leader.look()
        await leader.look()
        leader.clock.advance(seconds=31)
        await leader.look()
        assert told == [[], []]
