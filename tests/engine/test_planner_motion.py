"""The planner: ahead of time, woken by changes, never on a fixed beat, and not stopped by one bad job."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from noonday.domain import planning
from noonday.domain.execution import ExecutionState, SkipReason
from noonday.domain.job import CatchUp, Job, JobState, MisfirePolicy
from noonday.domain.schedule import Cron, Immediate, Interval, IntervalUnit, Once
from noonday.engine import planner as planner_module
from noonday.store import audit, jobs
from noonday.testing import ManualInstance
from tests.factories import at

HOURLY = Cron(expression="0 * * * *")
SECONDLY = Interval(count=1, unit=IntervalUnit.SECONDS)


async def test_it_plans_ahead_so_that_nothing_is_left_to_do_at_the_due_moment(
    scheduler: ManualInstance,
) -> None:
    await scheduler.add("hourly", HOURLY, "work")
    assert await scheduler.engine.planner.run_once() == at("2027-01-01T12:59:58Z")
    assert await scheduler.history("hourly") == []

    scheduler.clock.move_to(at("2027-01-01T12:59:58Z"))
    assert await scheduler.engine.planner.run_once() == at("2027-01-01T13:59:58Z")
    [row] = await scheduler.history("hourly")
    assert row.state is ExecutionState.QUEUED
    assert row.available_at == row.scheduled_for == at("2027-01-01T13:00:00Z")


@pytest.mark.parametrize(("chance", "fires"), [(0.0, 5), (0.99, 7)])
async def test_a_job_that_fires_often_is_planned_for_several_fires_at_once(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch, chance: float, fires: int
) -> None:
    monkeypatch.setattr(scheduler.engine.planner, "_chance", lambda: chance)
    await scheduler.add("often", SECONDLY, "work")
    await scheduler.add("seldom", HOURLY, "work")
    before_the_next = scheduler.clock.now() + timedelta(seconds=fires + 1 - 2)
    assert await scheduler.engine.planner.run_once() == before_the_next
    assert len(await scheduler.history("often")) == fires
    assert await scheduler.history("seldom") == []
    await scheduler.jobs.pause("often")
    assert [row for row in await scheduler.history("often") if row.state is ExecutionState.QUEUED] == []


async def test_it_starts_nothing_before_its_moment(scheduler: ManualInstance) -> None:
    started: list[datetime] = []

    @scheduler.task
    async def work() -> None:
        started.append(scheduler.clock.now())

    await scheduler.add("hourly", HOURLY, "work")
    scheduler.clock.move_to(at("2027-01-01T12:59:59.999Z"))
    await scheduler.run_once()
    assert started == []
    await scheduler.tick(milliseconds=1)
    assert started == [at("2027-01-01T13:00:00Z")]


async def test_it_is_woken_by_a_new_job_and_goes_back_to_sleep(scheduler: ManualInstance) -> None:
    passes = asyncio.Queue[datetime]()
    planner = scheduler.engine.planner
    once = planner.run_once

    async def counted() -> object:
        wish = await once()
        passes.put_nowait(scheduler.clock.now())
        return wish

    planner.run_once = counted  # type: ignore[method-assign,assignment]  # only watched
    motion = asyncio.create_task(planner.run())
    async with asyncio.timeout(20):
        await passes.get()
        await scheduler.add("soon", Once(run_at=at("2027-01-01T12:00:01Z")), "work")
        await passes.get()
        [row] = await scheduler.history("soon")
        assert row.state is ExecutionState.QUEUED
        await asyncio.sleep(0)
        assert passes.empty()
        assert scheduler.clock.alarms == {planner.wake: at("2037-01-01T12:00:00Z") - timedelta(days=3)}
    motion.cancel()
    with pytest.raises(asyncio.CancelledError):
        await motion


async def test_it_leaves_an_edited_job_nothing_of_its_old_schedule(scheduler: ManualInstance) -> None:
    await scheduler.add("edited", Once(run_at=at("2027-01-01T12:00:02Z")), "work")
    await scheduler.run_once()
    assert len(await scheduler.history("edited")) == 1

    def later(job: Job) -> Job:
        return replace(job, timing=replace(job.timing, schedule=Once(run_at=at("2027-01-01T12:05:00Z"))))

    await scheduler.jobs.change("edited", later)

    @scheduler.task
    async def work() -> None:
        pass

    await scheduler.tick(minutes=10)
    [run] = await scheduler.history("edited")
    assert run.scheduled_for == at("2027-01-01T12:05:00Z")
    assert run.state is ExecutionState.COMPLETED


async def test_it_sets_a_bad_job_aside_and_plans_the_others(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    bad = await scheduler.add("bad", HOURLY, "work")
    await scheduler.add("good", HOURLY, "work")

    def poisoned(job: Job, facts: planning.Facts, now: datetime) -> planning.Plan:
        if job.name == "bad":
            raise ZeroDivisionError("a hole in the calendar")
        return planning.plan(job, facts, now)

    monkeypatch.setattr(planner_module, "plan", poisoned)
    await scheduler.tick(hours=2)
    assert [run.state for run in await scheduler.history("good")] == [ExecutionState.COMPLETED] * 2
    aside = await scheduler.jobs.get("bad")
    assert (aside.paused, aside.state) == (True, JobState.PAUSED)
    [row] = await scheduler.history("bad")
    assert row.state is ExecutionState.FAILED
    assert row.detail is not None
    assert "a hole in the calendar" in row.detail
    entries = await scheduler.db.read(lambda conn: audit.page(conn, bad.id))
    assert entries.items[0].action == "set aside"
    assert scheduler.engine.counters.set_aside == 1


async def test_it_does_not_turn_in_circles_over_a_plan_without_headway(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scheduler.add("stuck", HOURLY, "work")

    def standing(job: Job, facts: planning.Facts, now: datetime) -> planning.Plan:
        return planning.Plan(next_run_at=job.next_run_at, fire_count=job.fire_count)

    monkeypatch.setattr(planner_module, "plan", standing)
    await scheduler.tick(hours=1)
    assert (await scheduler.jobs.get("stuck")).paused


async def test_it_plans_more_jobs_than_fit_into_one_transaction(scheduler: ManualInstance) -> None:
    scheduler.engine.planner._config = planner_module.PlannerConfig(batch=3)
    for number in range(8):
        await scheduler.add(f"job-{number}", Immediate(), "work")
    await scheduler.engine.planner.run_once()
    assert scheduler.engine.counters.planned == 8


async def test_jobs_with_many_runs_are_planned_a_few_at_a_time(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they are planned nobody claims of them, and to plan all of them takes long."""
    planner = scheduler.engine.planner
    planner._config = planner_module.PlannerConfig(batch=50, runs=40)
    asked: list[int] = []
    due = jobs.due

    def looking(conn: Connection, before: datetime, limit: int) -> list[Any]:
        asked.append(limit)
        return due(conn, before, limit)

    monkeypatch.setattr("noonday.engine.planner.jobs.due", looking)
    policy = MisfirePolicy(catch_up=CatchUp.ALL, coalesce=False)
    every = Interval(count=1, unit=IntervalUnit.MINUTES)
    for number in range(60):
        await scheduler.add(f"job-{number}", every, "work", misfire=policy)
    scheduler.clock.advance(minutes=10)  # nobody planned meanwhile
    await planner.run_once()
    assert asked[0] == 40
    assert set(asked[1:]) == {4}
    assert scheduler.engine.counters.planned == 600


async def test_a_crowd_has_its_turn_twice_as_long_before(scheduler: ManualInstance) -> None:
    planner, due = scheduler.engine.planner, at("2027-01-01T12:00:30Z")
    planner._config = planner_module.PlannerConfig(crowd=5, batch=2)
    for number in range(4):
        await scheduler.add(f"one-{number}", Once(run_at=due), "work")
    assert await planner.run_once() == due - timedelta(seconds=2)
    await scheduler.add("one-4", Once(run_at=due + timedelta(milliseconds=50)), "work")
    assert await planner.run_once() == due - timedelta(seconds=4)
    scheduler.clock.move_to(due - timedelta(seconds=4.001))
    await planner.run_once()
    assert await scheduler.history("one-0") == []
    scheduler.clock.move_to(due - timedelta(seconds=4))
    await planner.run_once()
    for number in range(5):
        assert len(await scheduler.history(f"one-{number}")) == 1


async def test_a_crowd_that_fires_often_is_planned_as_far_beyond_as_few_are(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner = scheduler.engine.planner
    planner._config = planner_module.PlannerConfig(crowd=2)
    monkeypatch.setattr(planner, "_chance", lambda: 0.0)
    for name in ("one", "two"):
        await scheduler.add(name, SECONDLY, "work")
    first = await planner.run_once()
    assert isinstance(first, datetime)
    planned = len(await scheduler.history("one"))
    scheduler.clock.move_to(first)
    second = await planner.run_once()
    assert isinstance(second, datetime)
    assert second - first >= timedelta(seconds=3), "it comes as seldom as for others"
    assert len(await scheduler.history("one")) >= planned + 3


async def test_it_looks_more_often_where_much_is_due(scheduler: ManualInstance) -> None:
    """Each time for about a batch, instead of several of them one after the other."""
    planner = scheduler.engine.planner
    planner._config = planner_module.PlannerConfig(batch=5)
    later = Interval(count=1, unit=IntervalUnit.HOURS)

    async def next_look() -> timedelta:
        wish = await planner.run_once()
        assert isinstance(wish, datetime)
        return wish - scheduler.clock.now()

    for number in range(20):
        await scheduler.add(f"now-{number}", Immediate(), "work")
    await scheduler.add("soon", Once(run_at=scheduler.clock.now() + timedelta(seconds=2.05)), "work")
    usual = planner._config.lookahead / 4
    assert await next_look() < usual / 3
    scheduler.clock.advance(hours=1)
    await scheduler.add("later", later, "work")
    await scheduler.add("soon again", Once(run_at=scheduler.clock.now() + timedelta(seconds=2.05)), "work")
    await planner.run_once()
    assert planner._wait == usual, "it has calmed down"


async def test_it_catches_up_every_instant_of_a_long_outage_when_asked(scheduler: ManualInstance) -> None:
    policy = MisfirePolicy(catch_up=CatchUp.ALL)
    await scheduler.add("all", SECONDLY, "work", misfire=policy)
    scheduler.clock.advance(seconds=2500)  # more than one transaction plans
    await scheduler.engine.planner.run_once()
    rows = await scheduler.history("all")
    due = [row.scheduled_for for row in rows if row.scheduled_for <= scheduler.clock.now()]
    assert len(due) == len(set(due)) == 2500
    assert due[0] + timedelta(seconds=2499) == due[-1]


async def test_it_runs_the_newest_and_records_the_rest_after_an_outage(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    await scheduler.add("hourly", HOURLY, "work", misfire=MisfirePolicy(catch_up=CatchUp.LATEST))
    await scheduler.add("none", HOURLY, "work")
    scheduler.clock.advance(hours=5, minutes=30)
    await scheduler.run_once()

    lapse, run = await scheduler.history("hourly")
    assert (lapse.state, lapse.skip_reason, lapse.skipped_count) == (
        ExecutionState.SKIPPED,
        SkipReason.COALESCED,
        4,
    )
    assert (run.state, run.scheduled_for) == (ExecutionState.COMPLETED, at("2027-01-01T17:00:00Z"))
    [missed] = await scheduler.history("none")
    assert (missed.skip_reason, missed.skipped_count) == (SkipReason.MISFIRE, 5)


async def test_it_brings_a_job_to_rest_whose_only_instant_was_missed(scheduler: ManualInstance) -> None:
    await scheduler.add("once", Once(run_at=at("2027-01-01T12:10:00Z")), "work")
    scheduler.clock.advance(hours=3)
    await scheduler.run_once()
    job = await scheduler.jobs.get("once")
    assert job.next_run_at is None
    assert job.state is JobState.COMPLETED
    [row] = await scheduler.history("once")
    assert row.skip_reason is SkipReason.MISFIRE
