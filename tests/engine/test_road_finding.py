"""The finder feeds what nobody fed, and puts back what the road lost."""

from __future__ import annotations

import asyncio

import pytest
from structlog.testing import capture_logs

from noonday.domain.execution import Road
from noonday.domain.job import Lane
from noonday.engine import feeder as limits
from noonday.store import feeding
from noonday.store.database import Database
from noonday.testing import FlakyRoad, ManualClock
from tests.engine.feeding_steps import Leader, a_row
from tests.engine.road_steps import ALLOW
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import MINUTE, SECOND, add, claim, plan


@pytest.fixture
async def leader(db: Database) -> Leader:
    clock = ManualClock(NOON)
    return Leader(db, FlakyRoad(clock), clock)


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

    async def test_the_next_leader_knows_how_far_a_dead_one_has_planned(self, leader: Leader) -> None:
        job = a_job()
        add(leader.db, job)
        row = a_row(leader.db, job, NOON + 8 * SECOND, pledged=True)
        heir = Leader(leader.db, leader.road, leader.clock, name="heir")
        await heir.look()
        assert heir.counters.restored == 1
        leader.clock.advance(seconds=8)
        await heir.look()
        assert await heir.lies_there() == [row.id]

    async def test_a_new_term_of_the_same_instance_looks_at_once_too(self, leader: Leader) -> None:
        job = a_job()
        add(leader.db, job)
        await leader.look()
        row = a_row(leader.db, job, pledged=True)  # by somebody else, who died
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
