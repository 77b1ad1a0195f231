"""An instance that is asked to drain finishes what it runs, takes nothing new, and goes on planning."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from noonday.control.instances import Instances
from noonday.domain.execution import ExecutionState
from noonday.domain.job import Overlap, OverlapPolicy
from noonday.domain.schedule import Immediate, Interval, IntervalUnit
from noonday.domain.target import PythonTarget
from noonday.store import instances
from noonday.store.instances import DRAINED, DRAINING, RUNNING, Instance
from noonday.testing import ManualInstance
from tests.control.peers import KEY

ROLES = ("scheduler", "worker")
EVERY_MINUTE = Interval(count=1, unit=IntervalUnit.MINUTES)


@pytest.fixture
async def scheduler(db_url: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ManualInstance]:
    def describe(self: ManualInstance) -> Instance:
        now, state = self.clock.now(), self.engine.state
        started_at = now - timedelta(seconds=self.clock.monotonic())
        return Instance(
            id="one", host="", pid=0, roles=ROLES, started_at=started_at, heartbeat_at=now, state=state
        )

    monkeypatch.setattr(ManualInstance, "_describe", describe)
    async with ManualInstance(db_url, name="one") as made:

        @made.task
        async def work(seconds: float = 0.0) -> None:
            if seconds:
                await made.clock.sleep(seconds)

        await made.engine.begin()
        yield made


async def told(scheduler: ManualInstance) -> str:
    [row] = await scheduler.db.read(instances.everyone)
    return row.state


async def test_it_finishes_what_it_runs_takes_nothing_new_and_goes_on_planning(
    scheduler: ManualInstance,
) -> None:
    crew = Instances(scheduler.db, scheduler.clock, KEY)
    await scheduler.add("steady", EVERY_MINUTE, "work", overlapping=OverlapPolicy(overlap=Overlap.ALLOW))
    await scheduler.tick(minutes=1)
    [run] = [row for row in await scheduler.history("steady") if row.state is ExecutionState.COMPLETED]
    await crew.drain("one", "alice")
    async with asyncio.timeout(5):
        await scheduler.engine.heartbeat.wake.wait()  # it is told at once
    await scheduler.engine.heartbeat.run_once()
    assert await told(scheduler) == DRAINED
    await scheduler.tick(minutes=3)
    rows = await scheduler.history("steady")
    assert [row.id for row in rows if row.state is ExecutionState.COMPLETED] == [run.id]
    assert len([row for row in rows if row.state is ExecutionState.QUEUED]) == 3  # planned all the same

    await crew.resume()
    await scheduler.engine.heartbeat.run_once()
    assert await told(scheduler) == RUNNING
    await scheduler.tick(seconds=1)
    assert [row.state for row in await scheduler.history("steady")] == [ExecutionState.COMPLETED] * 4


async def test_it_drains_until_its_last_run_has_ended(scheduler: ManualInstance) -> None:
    await scheduler.add("long", Immediate(), PythonTarget(task="work", args=(90,)))
    await scheduler.tick(seconds=1)
    await Instances(scheduler.db, scheduler.clock, KEY).drain()
    wish = await scheduler.engine.heartbeat.run_once()
    assert await told(scheduler) == DRAINING
    assert isinstance(wish, timedelta)
    assert wish < timedelta(seconds=1)  # somebody may be waiting for the end
    await scheduler.tick(seconds=100)
    await scheduler.engine.heartbeat.run_once()
    assert await told(scheduler) == DRAINED
    [run] = await scheduler.history("long")
    assert (run.state, run.attempt) == (ExecutionState.COMPLETED, 1)


async def test_it_writes_only_what_is_news(scheduler: ManualInstance) -> None:
    """On SQLite each write wakes every other process, whose heartbeat would write in turn."""
    heartbeat = scheduler.engine.heartbeat

    async def heard() -> object:
        [row] = await scheduler.db.read(instances.everyone)
        return row.heartbeat_at

    first = await heard()
    scheduler.clock.advance(seconds=5)
    await heartbeat.run_once()
    assert await heard() == first
    scheduler.clock.advance(seconds=5)
    await heartbeat.run_once()
    assert await heard() == scheduler.clock.now()


async def test_whoever_ends_is_not_talked_into_new_work(scheduler: ManualInstance) -> None:
    assert await scheduler.engine.finish(timedelta(seconds=1))
    scheduler.engine.obey(False)
    assert scheduler.engine.slots.draining
    await scheduler.engine.heartbeat.run_once()
    assert await scheduler.db.read(instances.everyone) == ()
