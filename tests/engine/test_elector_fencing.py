"""A paused ex-leader does no harm: what it wakes up to plan is refused by the store, whatever it believes."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import select, update

from noonday.clock import SystemClock
from noonday.domain.errors import NotLeader
from noonday.domain.execution import Execution
from noonday.domain.job import Job
from noonday.domain.outcome import Completed, Outcome
from noonday.domain.schedule import Cron, Immediate
from noonday.engine.engine import Engine, EngineConfig, Surroundings
from noonday.leadership.database import DatabaseLeadership
from noonday.ports import Run
from noonday.store import jobs, zones
from noonday.store.database import Database
from noonday.store.instances import Instance
from noonday.store.tables import executions, leadership
from noonday.store.tables import jobs as jobs_table
from noonday.testing import ManualClock
from tests.engine.electing import KEY, TTL
from tests.factories import a_job, a_timing


class Idle:
    async def run(self, run: Run) -> Outcome:
        return Completed()


async def nobody(execution: Execution) -> bool:
    return True


class House:
    """Two instances on one database. Their clocks stand still: a trust that never ends is the worst case."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = ManualClock()
        self.first, self.second = self.engine("one"), self.engine("two")
        self.one, self.two = self.first.elector, self.second.elector

    def engine(self, name: str) -> Engine:
        keeper = DatabaseLeadership(self.db, self.clock, key=KEY, ttl=TTL, holder=name)
        around = Surroundings(
            db=self.db,
            clock=self.clock,
            target=Idle(),
            knows=lambda task: True,
            cancel_remote=nobody,
            describe=self.describe,
            leadership=(keeper,),
        )
        return Engine(around, EngineConfig(instance_id=name))

    def describe(self) -> Instance:
        now = self.clock.now()
        return Instance(id="", host="", pid=0, roles=(), started_at=now, heartbeat_at=now)

    async def lease_ends(self) -> None:
        past = SystemClock().now() - timedelta(days=1000)
        await self.db.write(lambda conn: conn.execute(update(leadership).values(expires_at=past)))

    async def second_is_elected_while_the_first_is_paused(self) -> None:
        await self.one.run_once()
        assert self.one.term == 1
        await self.lease_ends()
        await self.two.run_once()
        assert self.two.term == 2
        assert self.one.leading, "it does not know yet"

    async def add(self, job: Job) -> None:
        await self.db.write(partial(jobs.add, job=job))

    async def rows(self) -> int:
        return await self.db.read(lambda conn: len(conn.execute(select(executions.c.id)).all()))


@pytest.fixture
async def house(db: Database) -> House:
    return House(db)


async def test_it_plans_nothing_after_another_was_elected(house: House) -> None:
    now = house.clock.now()
    await house.add(a_job(schedule=Immediate(), next_run_at=now))
    await house.second_is_elected_while_the_first_is_paused()
    with pytest.raises(NotLeader):
        await house.first.planner.run_once()
    assert await house.rows() == 0
    assert not house.one.leading, "now it knows"
    await house.second.planner.run_once()
    assert await house.rows() == 1


async def test_it_arms_no_job_after_another_was_elected(house: House) -> None:
    await house.add(a_job(schedule=Cron(expression="0 * * * *")))
    await house.db.write(lambda conn: conn.execute(update(jobs_table).values(dirty=True)))
    await house.second_is_elected_while_the_first_is_paused()
    with pytest.raises(NotLeader):
        await house.first.watcher.run_once()
    dirty = await house.db.read(lambda conn: conn.execute(select(jobs_table.c.dirty)).scalar_one())
    assert dirty
    await house.second.watcher.run_once()


async def test_it_marks_no_zone_after_another_was_elected(house: House) -> None:
    await house.add(a_job(timing=a_timing(timezone="Europe/Berlin")))
    await house.second_is_elected_while_the_first_is_paused()
    with pytest.raises(NotLeader):
        await house.first.zones.run_once()
    assert await house.db.read(partial(zones.mark, zone="Europe/Berlin")) is None
    await house.second.zones.run_once()
    assert await house.db.read(partial(zones.mark, zone="Europe/Berlin")) is not None


async def test_loses_leadership_when_same_leader_id_term_is_replaced(house: House) -> None:
    """A second process under the same name: the holder is the same, the term is not."""
    await house.one.run_once()
    replaced = house.engine("one").elector
    await replaced.run_once()
    assert (house.one.term, replaced.term) == (1, 2)
    with pytest.raises(NotLeader):
        await house.db.write(house.one.fence)
    assert not house.one.leading
    await house.db.write(replaced.fence)
    assert replaced.leading


async def test_a_refused_fence_wakes_the_elector(house: House) -> None:
    await house.second_is_elected_while_the_first_is_paused()
    house.one.wake.clear()
    with pytest.raises(NotLeader):
        await house.db.write(house.one.fence)
    async with asyncio.timeout(5):
        await house.one.wake.wait()
    await house.one.run_once()
    assert not house.one.leading
    await house.db.write(house.two.fence)


async def test_a_leader_hears_at_once_that_another_was_elected(house: House) -> None:
    await house.one.run_once()
    house.one.wake.clear()
    await house.lease_ends()
    await house.two.run_once()
    async with asyncio.timeout(5):
        await house.one.wake.wait()
    await house.one.run_once()
    assert not house.one.leading
    assert house.two.leading


@pytest.mark.parametrize("name", ["planner", "watcher", "zones"])
async def test_its_actors_wait_at_the_gate_until_it_leads_again(house: House, name: str) -> None:
    await house.add(a_job(timing=a_timing(timezone="Europe/Berlin")))
    await house.second_is_elected_while_the_first_is_paused()
    [actor] = [actor for actor in house.first.actors if actor.name == name]
    passes = 0
    once = actor.run_once

    async def counted() -> object:
        nonlocal passes
        passes += 1
        return await once()

    actor.run_once = counted  # type: ignore[method-assign,assignment]
    motion = asyncio.create_task(actor.run())
    async with asyncio.timeout(10):
        while house.one.leading:
            await asyncio.sleep(0.01)
    for _ in range(50):
        await asyncio.sleep(0)
    assert passes == 1, "refused once, and no circle of refusals"

    await house.two.resign()
    await house.one.run_once()
    async with asyncio.timeout(10):
        while passes < 2:
            await asyncio.sleep(0.01)
    motion.cancel()
    with pytest.raises(asyncio.CancelledError):
        await motion


async def test_a_resignation_is_heard_and_the_next_one_leads_at_once(house: House) -> None:
    await house.one.run_once()
    await house.two.run_once()
    house.two.wake.clear()
    await house.one.resign()
    async with asyncio.timeout(5):
        await house.two.wake.wait()
    await house.two.run_once()
    assert house.two.term == 2
    with pytest.raises(NotLeader):
        await house.db.write(house.one.fence)
