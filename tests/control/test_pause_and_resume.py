"""Promise 6: pausing, resuming and editing never fire by surprise, and nothing disappears."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from noonday.domain.errors import MoveRefused
from noonday.domain.execution import ExecutionState, SkipReason
from noonday.domain.job import CatchUp, JobState, MisfirePolicy
from noonday.domain.outcome import Completed
from noonday.domain.schedule import Cron, Immediate, Interval, Manual, Once
from tests.control.desk import Desk
from tests.factories import NOON, a_timing, at

HOURLY = Cron(expression="0 * * * *")
MINUTELY = Cron(expression="* * * * *")


async def test_it_takes_back_what_was_planned_ahead(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    await desk.plan(minutes=3)
    assert [e.state for e in await desk.history(job)] == [ExecutionState.QUEUED] * 3

    paused = await desk.jobs.pause(job.id, "alice")

    assert (paused.state, paused.paused, paused.fire_count) == (JobState.PAUSED, True, 0)
    assert paused.next_run_at == at("2027-01-01T12:01")
    assert await desk.history(job) == []


async def test_it_records_what_was_due_but_had_not_begun(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    await desk.plan(minutes=2)
    desk.advance(seconds=90)

    await desk.jobs.pause(job.id)

    (row,) = await desk.history(job)
    assert (row.state, row.skip_reason) == (ExecutionState.SKIPPED, SkipReason.PAUSED)
    assert row.scheduled_for == at("2027-01-01T12:01")
    assert await desk.claim() == []


async def test_it_starts_nothing_while_paused(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    await desk.jobs.pause(job.id)
    desk.advance(hours=2)
    await desk.plan(minutes=1)
    assert await desk.claim() == []
    assert await desk.history(job) == []


async def test_it_goes_on_with_the_next_future_time_and_records_the_rest(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.pause(job.id)
    desk.advance(hours=3, minutes=30)

    resumed = await desk.jobs.resume(job.id, "alice")

    assert (resumed.state, resumed.paused) == (JobState.SCHEDULED, False)
    assert resumed.next_run_at == at("2027-01-01T16:00")
    (lapse,) = await desk.history(job)
    assert (lapse.skip_reason, lapse.skipped_count) == (SkipReason.PAUSED, 3)
    assert (lapse.scheduled_for, lapse.through_at) == (at("2027-01-01T13:00"), at("2027-01-01T15:00"))
    await desk.plan()
    assert await desk.claim() == []


async def test_it_records_nothing_if_nothing_was_missed(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.pause(job.id)
    desk.advance(minutes=5)
    resumed = await desk.jobs.resume(job.id)
    assert resumed.next_run_at == at("2027-01-01T13:00")
    assert await desk.history(job) == []


async def test_it_counts_instants_outside_the_lookahead_once_over_several_pauses(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    for _ in range(3):
        await desk.plan(minutes=2)
        await desk.jobs.pause(job.id)
        desk.advance(minutes=5)
        await desk.jobs.resume(job.id)
    lapses = await desk.history(job)
    assert {e.skip_reason for e in lapses} == {SkipReason.PAUSED}
    assert sum(e.skipped_count for e in lapses) == 15
    ends = [(e.scheduled_for, e.through_at) for e in lapses]
    assert ends == sorted(ends)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(ends) if earlier[1])


async def test_it_catches_up_by_the_misfire_rules_if_asked(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY, misfire=MisfirePolicy(catch_up=CatchUp.ALL))
    await desk.jobs.pause(job.id)
    desk.advance(hours=3, minutes=30)

    resumed = await desk.jobs.resume(job.id, catch_up=True)

    assert resumed.next_run_at == at("2027-01-01T13:00")
    await desk.plan()
    assert [e.scheduled_for.hour for e in await desk.history(job)] == [13, 14, 15]


async def test_it_keeps_an_overdue_cursor_of_a_job_that_was_never_planned(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    desk.advance(hours=2, minutes=1)
    await desk.jobs.pause(job.id)
    desk.advance(hours=1)
    await desk.jobs.resume(job.id)
    (lapse,) = await desk.history(job)
    assert (lapse.scheduled_for, lapse.skipped_count) == (at("2027-01-01T13:00"), 3)


@pytest.mark.parametrize(
    "schedule", [HOURLY, Interval(count=5, after_completion=True)], ids=["cron", "delay"]
)
async def test_it_refuses_to_pause_a_running_job_and_names_both_states(
    desk: Desk, schedule: Cron | Interval
) -> None:
    job = await desk.new(schedule=schedule)
    await desk.jobs.force_run(job.id)
    await desk.claim()
    with pytest.raises(MoveRefused, match="running cannot become paused"):
        await desk.jobs.pause(job.id)


async def test_it_refuses_to_pause_twice_and_to_resume_what_is_not_paused(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    with pytest.raises(MoveRefused, match="not paused"):
        await desk.jobs.resume(job.id)
    await desk.jobs.pause(job.id)
    with pytest.raises(MoveRefused, match="paused cannot become paused"):
        await desk.jobs.pause(job.id)


async def test_it_resumes_a_paused_job_whose_forced_run_is_going_on(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.pause(job.id)
    await desk.jobs.force_run(job.id)
    (run,) = await desk.claim()
    assert (await desk.jobs.get(job.id)).state is JobState.RUNNING

    resumed = await desk.jobs.resume(job.id)

    assert (resumed.state, resumed.paused) == (JobState.RUNNING, False)
    await desk.settle(run, Completed())
    assert (await desk.jobs.get(job.id)).state is JobState.SCHEDULED


async def test_it_goes_on_with_a_fixed_delay_after_a_pause(desk: Desk) -> None:
    job = await desk.new(schedule=Interval(count=5, after_completion=True))
    await desk.plan(minutes=6)
    await desk.jobs.pause(job.id)
    desk.advance(hours=1)
    resumed = await desk.jobs.resume(job.id)
    assert resumed.next_run_at is not None
    assert resumed.next_run_at > desk.clock.now()
    assert all(e.state is ExecutionState.SKIPPED for e in await desk.history(job))


async def test_it_runs_an_immediate_job_when_it_is_enabled_at_last(desk: Desk) -> None:
    job = await desk.new(schedule=Immediate(), enabled=False)
    assert job.state is JobState.SCHEDULED
    desk.advance(days=1)
    await desk.plan()
    assert await desk.claim() == []

    await desk.jobs.enable(job.id)
    await desk.plan()

    (run,) = await desk.claim()
    assert run.scheduled_for == desk.clock.now()


async def test_it_runs_an_immediate_job_that_was_paused_before_it_began(desk: Desk) -> None:
    job = await desk.new(schedule=Immediate())
    await desk.plan()
    await desk.jobs.pause(job.id)
    desk.advance(minutes=1)
    await desk.jobs.resume(job.id)
    await desk.plan()
    assert len(await desk.claim()) == 1


async def test_it_does_not_run_twice_what_runs_once(desk: Desk) -> None:
    job = await desk.new(timing=a_timing(Once(run_at=NOON + timedelta(seconds=10))))
    await desk.plan(seconds=20)
    desk.advance(seconds=11)
    await desk.jobs.pause(job.id)
    desk.advance(seconds=10)

    resumed = await desk.jobs.resume(job.id)

    assert (resumed.state, resumed.next_run_at) == (JobState.COMPLETED, None)
    (row,) = await desk.history(job)
    assert row.skip_reason is SkipReason.PAUSED


async def test_it_still_runs_a_single_run_within_its_grace(desk: Desk) -> None:
    job = await desk.new(timing=a_timing(Once(run_at=NOON + timedelta(seconds=10))))
    await desk.jobs.pause(job.id)
    desk.advance(seconds=20)
    await desk.jobs.resume(job.id)
    await desk.plan()
    assert len(await desk.claim()) == 1
    assert len(await desk.history(job)) == 1


async def test_it_records_what_fell_into_the_time_a_job_was_disabled(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    disabled = await desk.jobs.disable(job.id)
    assert disabled.state is JobState.SCHEDULED
    desk.advance(hours=2, minutes=1)
    await desk.plan()
    enabled = await desk.jobs.enable(job.id)
    assert enabled.next_run_at == at("2027-01-01T15:00")
    (lapse,) = await desk.history(job)
    assert (lapse.skip_reason, lapse.skipped_count) == (SkipReason.DISABLED, 2)


async def test_it_gives_a_new_schedule_from_now_on(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    await desk.plan(minutes=2)
    desk.advance(seconds=70)

    changed = await desk.jobs.change(job.id, lambda j: replace(j, timing=a_timing(HOURLY)))

    assert changed.next_run_at == at("2027-01-01T13:00")
    assert changed.fire_count == 1
    (row,) = await desk.history(job)
    assert (row.scheduled_for, row.skip_reason) == (at("2027-01-01T12:01"), SkipReason.EDITED)


async def test_it_records_overdue_instants_of_the_old_schedule(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    desk.advance(minutes=10, seconds=1)
    changed = await desk.jobs.change(job.id, lambda j: replace(j, timing=a_timing(HOURLY)))
    assert changed.next_run_at == at("2027-01-01T13:00")
    (lapse,) = await desk.history(job)
    assert (lapse.skip_reason, lapse.skipped_count) == (SkipReason.EDITED, 10)


async def test_it_leaves_the_timing_alone_when_something_else_changes(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    await desk.plan(minutes=2)
    before = await desk.history(job)
    changed = await desk.jobs.change(job.id, lambda j: replace(j, description="new"))
    assert changed.description == "new"
    assert changed.next_run_at == at("2027-01-01T12:03")
    assert await desk.history(job) == before


async def test_it_stays_paused_when_its_schedule_is_changed(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    await desk.jobs.pause(job.id)
    desk.advance(minutes=3)
    changed = await desk.jobs.change(job.id, lambda j: replace(j, timing=a_timing(HOURLY)))
    assert (changed.state, changed.paused) == (JobState.PAUSED, True)
    desk.advance(hours=2)
    await desk.jobs.resume(job.id)
    counts = [(e.skip_reason, e.skipped_count) for e in await desk.history(job)]
    assert counts == [(SkipReason.PAUSED, 3), (SkipReason.PAUSED, 2)]


async def test_it_schedules_again_what_was_completed(desk: Desk) -> None:
    job = await desk.new(schedule=Immediate())
    await desk.plan()
    (run,) = await desk.claim()
    await desk.settle(run, Completed())
    assert (await desk.jobs.get(job.id)).state is JobState.COMPLETED
    desk.advance(minutes=1)
    changed = await desk.jobs.change(job.id, lambda j: replace(j, timing=a_timing(HOURLY)))
    assert (changed.state, changed.next_run_at) == (JobState.SCHEDULED, at("2027-01-01T13:00"))


async def test_it_waits_for_a_call_once_its_schedule_is_taken_away(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    await desk.plan(minutes=2)
    changed = await desk.jobs.change(job.id, lambda j: replace(j, timing=a_timing(Manual())))
    assert (changed.state, changed.next_run_at) == (JobState.SCHEDULED, None)
    assert await desk.history(job) == []


async def test_it_ends_a_job_whose_runs_are_used_up_by_an_edit(desk: Desk) -> None:
    job = await desk.new(schedule=MINUTELY)
    await desk.plan(minutes=1)
    desk.advance(minutes=1)
    (run,) = await desk.claim()
    await desk.settle(run, Completed())
    changed = await desk.jobs.change(job.id, lambda j: replace(j, timing=a_timing(MINUTELY, max_runs=1)))
    assert (changed.state, changed.next_run_at) == (JobState.COMPLETED, None)
