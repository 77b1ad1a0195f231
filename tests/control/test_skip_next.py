"""Skipping the next run: it is recorded, it does not fire, and the schedule goes on after it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from noonday.domain.errors import Conflict
from noonday.domain.execution import ExecutionState, SkipReason
from noonday.domain.job import JobState
from noonday.domain.outcome import Completed
from noonday.domain.schedule import Cron, Interval, IntervalUnit, Manual, Once
from noonday.domain.upcoming import fires
from tests.control.desk import Desk
from tests.factories import NOON, a_timing, at

HOURLY = Cron(expression="0 * * * *")


async def test_it_records_the_instant_and_moves_on(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)

    left = await desk.jobs.skip_next(job.id, "alice")

    assert left.next_run_at == at("2027-01-01T14:00")
    assert next(fires(left, desk.clock.now())) == at("2027-01-01T14:00")
    (row,) = await desk.history(job)
    assert (row.state, row.skip_reason) == (ExecutionState.SKIPPED, SkipReason.SKIPPED)
    assert (row.scheduled_for, row.detail) == (at("2027-01-01T13:00"), "alice skipped this run")
    assert left.revision == job.revision  # a run, not the definition


async def test_the_skipped_run_does_not_fire_and_the_next_one_does(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.skip_next(job.id)
    desk.advance(hours=1, minutes=1)
    await desk.plan(minutes=1)
    assert await desk.claim() == []
    desk.advance(hours=1)
    await desk.plan(minutes=1)
    assert [run.scheduled_for for run in await desk.claim()] == [at("2027-01-01T14:00")]


async def test_it_takes_back_what_is_planned_already(desk: Desk) -> None:
    job = await desk.new(schedule=Cron(expression="* * * * *"))
    await desk.plan(minutes=2)

    left = await desk.jobs.skip_next(job.id)

    assert (left.next_run_at, left.fire_count) == (at("2027-01-01T12:02"), 0)
    rows = {row.scheduled_for: row.state for row in await desk.history(job)}
    assert rows == {at("2027-01-01T12:01"): ExecutionState.SKIPPED}


async def test_it_stays_skipped_through_a_pause(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.skip_next(job.id)
    await desk.jobs.skip_next(job.id)
    await desk.jobs.pause(job.id)
    resumed = await desk.jobs.resume(job.id)
    assert resumed.next_run_at == at("2027-01-01T15:00")
    assert {row.skip_reason for row in await desk.history(job)} == {SkipReason.SKIPPED}


async def test_a_pause_over_the_skipped_run_still_records_the_others(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.skip_next(job.id)
    await desk.jobs.pause(job.id)
    desk.advance(hours=3, minutes=30)
    await desk.jobs.resume(job.id)
    reasons = {(row.scheduled_for, row.through_at, row.skip_reason) for row in await desk.history(job)}
    assert reasons == {
        (at("2027-01-01T13:00"), at("2027-01-01T13:00"), SkipReason.SKIPPED),
        (at("2027-01-01T14:00"), at("2027-01-01T15:00"), SkipReason.PAUSED),
    }


async def test_another_schedule_forgets_it(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.skip_next(job.id)
    half = a_timing(schedule=Cron(expression="*/30 * * * *"))

    changed = await desk.jobs.change(job.id, lambda found: replace(found, timing=half))

    assert (changed.next_run_at, changed.skipped_through) == (at("2027-01-01T12:30"), None)
    assert await desk.history(job) == []


async def test_another_description_keeps_it(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.skip_next(job.id)

    changed = await desk.jobs.change(job.id, lambda found: replace(found, description="new"))

    assert changed.next_run_at == at("2027-01-01T14:00")
    desk.advance(hours=1, minutes=1)
    await desk.plan(minutes=1)
    assert await desk.claim() == []


async def test_what_is_skipped_is_none_of_its_runs(desk: Desk) -> None:
    job = await desk.new(timing=a_timing(schedule=HOURLY, max_runs=2))
    await desk.jobs.skip_next(job.id)
    for _ in range(4):
        desk.advance(hours=1)
        await desk.plan(minutes=1)
        for run in await desk.claim():
            await desk.settle(run, Completed())
    ran = [row.scheduled_for for row in await desk.history(job) if row.state is ExecutionState.COMPLETED]
    assert sorted(ran) == [at("2027-01-01T14:00"), at("2027-01-01T15:00")]


async def test_people_who_skip_at_once_skip_one_each(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await asyncio.gather(*(desk.jobs.skip_next(job.id, name) for name in ("alice", "bob")))
    assert {row.detail for row in await desk.history(job)} == {
        "alice skipped this run",
        "bob skipped this run",
    }
    assert (await desk.jobs.get(job.id)).next_run_at == at("2027-01-01T15:00")


async def test_a_single_run_that_is_skipped_never_comes(desk: Desk) -> None:
    job = await desk.new(schedule=Once(run_at=NOON + timedelta(hours=1)))
    left = await desk.jobs.skip_next(job.id)
    assert (left.next_run_at, left.state) == (None, JobState.COMPLETED)
    await desk.jobs.disable(job.id)
    assert (await desk.jobs.enable(job.id)).next_run_at is None


async def test_a_chain_of_delays_goes_on_after_it(desk: Desk) -> None:
    every = Interval(count=10, unit=IntervalUnit.MINUTES, after_completion=True)
    job = await desk.new(schedule=every)
    await desk.plan(hours=1)
    desk.advance(minutes=10)
    (run,) = await desk.claim()
    await desk.settle(run, Completed())
    due = (await desk.jobs.get(job.id)).next_run_at
    assert due is not None

    left = await desk.jobs.skip_next(job.id)

    assert left.next_run_at == due + timedelta(minutes=10)


async def test_it_is_refused_where_nothing_comes(desk: Desk) -> None:
    manual = await desk.new(name="manual", schedule=Manual())
    with pytest.raises(Conflict, match="no next run"):
        await desk.jobs.skip_next(manual.id)
    job = await desk.new(name="hourly", schedule=HOURLY)
    await desk.jobs.pause(job.id)
    with pytest.raises(Conflict, match="is paused"):
        await desk.jobs.skip_next(job.id)


async def test_it_is_in_the_audit(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.skip_next(job.id, "alice")
    (entry,) = [one for one in await desk.audit(job.id) if one.action == "skip-next"]
    assert entry.actor == "alice"
    assert entry.after == {"scheduled_for": "2027-01-01T13:00:00+00:00"}
