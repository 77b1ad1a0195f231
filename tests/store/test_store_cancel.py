from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from noonday.domain.errors import Conflict, NotFound
from noonday.domain.execution import Cause, Execution, ExecutionState, SkipReason
from noonday.domain.job import Job, JobState, Overlap, OverlapPolicy
from noonday.domain.schedule import Cron, Interval, IntervalUnit, Once
from noonday.store import executions, history, jobs
from noonday.store.database import Database
from tests.factories import NOON, a_job, a_timing, an_execution
from tests.store.store_steps import MINUTE, SECOND, add, claim, end, job_now, look, plan, plan_run, sql


def cancel(db: Database, execution: Execution) -> Execution:
    return db.write_now(lambda conn: executions.request_cancel(conn, execution.id, "ada", NOON))


def test_a_waiting_execution_is_cancelled_at_once(db: Database) -> None:
    job = a_job(schedule=Once(run_at=NOON))
    add(db, job)
    planned = plan_run(db, job)
    cancelled = cancel(db, planned)
    assert cancelled == look(db, planned)
    assert (cancelled.state, cancelled.completed_at) == (ExecutionState.CANCELLED, NOON)
    assert cancelled.cancel_requested_by == "ada"
    assert claim(db) == []
    assert job_now(db, job).state is JobState.COMPLETED


def test_a_running_execution_is_asked_to_stop(db: Database) -> None:
    job = a_job()
    add(db, job)
    plan_run(db, job)
    (claimed,) = claim(db)
    asked = cancel(db, claimed.execution)
    assert asked.state is ExecutionState.RUNNING
    assert (asked.cancel_requested_at, asked.cancel_requested_by) == (NOON, "ada")
    assert asked.lease_token == claimed.execution.lease_token


def test_what_has_ended_cannot_be_cancelled(db: Database) -> None:
    job = a_job()
    add(db, job)
    plan_run(db, job)
    (claimed,) = claim(db)
    end(db, claimed)
    with pytest.raises(Conflict, match="completed"):
        cancel(db, claimed.execution)
    with pytest.raises(NotFound):
        cancel(db, an_execution())
    with pytest.raises(NotFound):
        db.write_now(lambda conn: executions.request_cancel(conn, "nobody", "ada", NOON))


def test_cancelling_what_waits_for_its_turn_leaves_the_others_theirs(db: Database) -> None:
    job = a_job(overlapping=OverlapPolicy(overlap=Overlap.QUEUE))
    add(db, job)
    first, second, third = (plan_run(db, job, NOON + n * SECOND) for n in range(3))
    (claimed,) = claim(db, NOON + MINUTE)
    assert claimed.execution.id == first.id
    cancel(db, second)
    end(db, claimed, now=NOON + MINUTE)
    (following,) = claim(db, NOON + MINUTE)
    assert following.execution.id == third.id


def test_cancelling_a_run_of_a_fixed_delay_job_keeps_it_going(db: Database) -> None:
    job = a_job(schedule=Interval(count=30, unit=IntervalUnit.SECONDS, after_completion=True))
    add(db, job)
    cancel(db, plan_run(db, job, NOON + MINUTE))
    after = job_now(db, job)
    assert (after.next_run_at, after.state) == (NOON + 30 * SECOND, JobState.SCHEDULED)


def test_everything_open_of_a_job_is_cancelled(db: Database) -> None:
    job, other = a_job(), a_job()
    add(db, job, other)
    plan_run(db, job)
    (running,) = claim(db)
    waiting = plan_run(db, job, NOON + MINUTE)
    foreign = plan_run(db, other, NOON + MINUTE)
    assert db.write_now(lambda conn: executions.cancel_of_job(conn, job.id, "ada", NOON)) == 2
    assert look(db, running.execution).cancel_requested_at == NOON
    assert look(db, waiting).state is ExecutionState.CANCELLED
    assert look(db, foreign) == replace(foreign, number=1)


def unplan(db: Database, job: Job, reason: SkipReason = SkipReason.PAUSED) -> Job:
    return db.write_now(lambda conn: executions.unplan(conn, jobs.lock(conn, job.id), NOON, reason))


def test_what_was_planned_ahead_is_taken_back_and_its_fires_given_back(db: Database) -> None:
    job = a_job(fire_count=5)
    add(db, job)
    for n in (1, 2):
        plan_run(db, job, NOON + n * SECOND)
    assert unplan(db, job).fire_count == 3
    assert job_now(db, job).fire_count == 3
    assert db.read_now(lambda conn: history.page(conn, job.id)).total == 0


def test_what_was_due_and_had_not_begun_is_skipped_with_the_reason(db: Database) -> None:
    job = a_job(fire_count=1)
    add(db, job)
    late = plan_run(db, job, NOON - SECOND)
    assert unplan(db, job).fire_count == 1
    skipped = look(db, late)
    assert (skipped.state, skipped.skip_reason) == (ExecutionState.SKIPPED, SkipReason.PAUSED)
    assert skipped.completed_at == NOON
    assert claim(db) == []


def test_what_runs_or_was_asked_for_is_left_alone(db: Database) -> None:
    job = a_job(overlapping=OverlapPolicy(max_instances=2))
    add(db, job)
    plan_run(db, job, NOON - SECOND)
    (running,) = claim(db)
    forced = plan_run(db, job, NOON + SECOND, cause=Cause.MANUAL)
    before = look(db, forced)
    unplan(db, job)
    assert look(db, running.execution) == running.execution
    assert look(db, forced) == before


def a_lapse(job: Job, first: object, last: object, count: int) -> Execution:
    return an_execution(
        job=job,
        scheduled_for=first,
        through_at=last,
        skipped_count=count,
        state=ExecutionState.SKIPPED,
        available_at=None,
        skip_reason=SkipReason.WINDOW,
        completed_at=NOON,
    )


def test_a_lapse_keeps_only_its_past(db: Database) -> None:
    job = a_job(timing=a_timing(Cron(expression="* * * * *")))
    add(db, job)
    past = a_lapse(job, NOON - 30 * MINUTE, NOON - 20 * MINUTE, 11)
    across = a_lapse(job, NOON - 10 * MINUTE, NOON + 10 * MINUTE, 21)
    ahead = a_lapse(job, NOON + 20 * MINUTE, NOON + 30 * MINUTE, 11)
    plan(db, past, across, ahead)
    before = look(db, past)
    unplan(db, job, SkipReason.EDITED)
    cut = look(db, across)
    assert (cut.through_at, cut.skipped_count) == (NOON, 11)
    assert look(db, past) == before
    assert db.read_now(lambda conn: executions.get(conn, ahead.id)) is None


def test_removing_a_job_cancels_what_is_open(db: Database) -> None:
    job = a_job()
    add(db, job)
    planned = plan_run(db, job)
    db.write_now(lambda conn: jobs.remove(conn, job.id))
    gone = look(db, planned)
    assert gone.state is ExecutionState.CANCELLED
    assert gone.completed_at is not None
    assert gone.detail == "the job was removed"
    assert claim(db, NOON + timedelta(days=1)) == []


def test_a_retry_that_waits_survives_unplanning(db: Database) -> None:
    """Whether it may still start is decided when it is claimed."""
    job = a_job()
    add(db, job)
    plan_run(db, job, NOON - SECOND)
    (running,) = claim(db, NOON - SECOND)
    sql(
        db, f"UPDATE executions SET state = 'pending', available_at = scheduled_for WHERE job_id = '{job.id}'"
    )
    unplan(db, job)
    assert look(db, running.execution).state is ExecutionState.PENDING
