"""Onto the road: pledges at their moment, rows that nobody fed, and what the road lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from noonday.clock import SystemClock
from noonday.domain.job import Lane
from noonday.domain.schedule import Interval, IntervalUnit
from noonday.engine import feeder as limits
from noonday.engine.counters import Counters
from noonday.engine.feeder import Feeder
from noonday.engine.planner import Planner, PlannerConfig
from noonday.engine.streams import Streams
from noonday.ports import Parcel, Silence
from noonday.store import feeding
from noonday.store.database import Database
from noonday.testing import FlakyRoad, ManualClock
from tests.engine.feeding_steps import AHEAD, Leader, a_pledge
from tests.factories import NOON, a_job
from tests.store.store_steps import MINUTE, SECOND, add, look


@pytest.fixture
async def leader(db: Database) -> Leader:
    clock = ManualClock(NOON)
    return Leader(db, FlakyRoad(clock), clock)


class TestPledges:
    async def test_they_go_out_at_their_moment_and_not_before(self, leader: Leader) -> None:
        late, soon, now = (a_pledge(NOON + n * SECOND) for n in (9, 1, 0))
        leader.feeder.pledge([late, soon, now])
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
        leader.feeder.pledge(a_pledge(NOON, lane) for lane in Lane for _ in range(100))
        assert await leader.feeder.run_once() is None
        assert calls == [300]
        assert sorted(leader.heard.put) == [(lane, 100) for lane in Lane]
        assert leader.counters.enqueued == 300

    async def test_those_close_behind_come_along_and_the_others_later(self, leader: Leader) -> None:
        lead = timedelta(milliseconds=60)
        feeder = Feeder(
            clock=leader.clock,
            streams=leader.streams,
            counters=leader.counters,
            telemetry=leader.heard,
            lead=lead,
        )
        moments = [NOON + timedelta(milliseconds=n) for n in (60, 75, 90, 91, 120)]
        feeder.pledge(map(a_pledge, moments))
        assert await feeder.run_once() == moments[3] - lead
        assert leader.heard.put == [(Lane.NORMAL, 3)]
        leader.clock.advance(milliseconds=31)
        assert await feeder.run_once() is None
        assert leader.heard.put == [(Lane.NORMAL, 3), (Lane.NORMAL, 2)]

    async def test_on_the_real_clock_they_are_exact(self) -> None:
        clock = SystemClock()
        road = FlakyRoad(clock)
        arrived: list[float] = []
        streams = Streams(queue=road.queue("one"), clock=clock)
        feeder = Feeder(clock=clock, streams=streams, counters=Counters(), telemetry=Silence())
        start = clock.now() + timedelta(milliseconds=100)
        moments = [start + timedelta(milliseconds=20 * n) for n in range(10)]
        feeder.pledge(a_pledge(moment) for moment in moments)
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
        leader.feeder.pledge([a_pledge(NOON), a_pledge(NOON + MINUTE)])
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
        leader.feeder.pledge([a_pledge(NOON, Lane.HIGH)])
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
            config=PlannerConfig(lookahead=AHEAD, reach=AHEAD),
            feeder=leader.feeder,
            telemetry=leader.heard,
            chance=lambda: 0.0,
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
        leader.feeder.pledge([a_pledge(NOON)])
        await leader.feeder.run_once()
        planner = Planner(
            db=leader.db,
            clock=leader.clock,
            counters=leader.counters,
            config=PlannerConfig(lookahead=AHEAD, reach=AHEAD),
            feeder=leader.feeder,
            telemetry=leader.heard,
            chance=lambda: 0.0,
        )
        await planner.run_once()
        assert leader.counters.planned == 1
        assert leader.db.read_now(feeding.next_unfed_at) == NOON
