from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection

from noonday.domain.execution import Cause, ExecutionState, SkipReason, WaitReason
from noonday.domain.job import JobState, Lane, Overlap, OverlapPolicy, RetryPolicy
from noonday.domain.outcome import Failed
from noonday.domain.schedule import Once
from noonday.store import executions, jobs
from noonday.store.database import Database
from tests.factories import LEASE, NOON, a_job, an_execution
from tests.store.store_steps import (
    BAD,
    MINUTE,
    SECOND,
    add,
    claim,
    end,
    job_now,
    look,
    plan,
    plan_run,
    run,
    sql,
)


def test_a_claim_starts_what_is_due(db: Database) -> None:
    job = a_job(timeout=timedelta(minutes=2))
    add(db, job)
    planned = plan_run(db, job)
    (claimed,) = claim(db)
    execution = claimed.execution
    assert execution == look(db, planned)
    assert execution.state is ExecutionState.RUNNING
    assert execution.attempt == 1
    assert execution.instance_id == "instance-1"
    assert execution.lease_expires_at == NOON + LEASE
    assert execution.deadline_at == NOON + timedelta(minutes=2)
    assert (execution.claimed_at, execution.started_at) == (NOON, NOON)
    after = job_now(db, job)
    assert (after.state, after.last_run_at) == (JobState.RUNNING, NOON)
    (lock,) = sql(db, "SELECT lock_token FROM jobs")
    assert lock["lock_token"] == execution.lease_token


def test_it_is_claimed_once(db: Database) -> None:
    job = a_job()
    add(db, job)
    plan_run(db, job)
    assert len(claim(db)) == 1
    assert claim(db) == []


def test_what_is_not_yet_due_is_not_claimed(db: Database) -> None:
    job = a_job()
    add(db, job)
    plan_run(db, job, NOON + SECOND)
    assert claim(db) == []
    assert db.read_now(executions.next_available_at) == NOON + SECOND
    assert len(claim(db, NOON + SECOND)) == 1
    assert db.read_now(executions.next_available_at) is None


def test_each_claim_has_its_own_token(db: Database) -> None:
    one, two = a_job(), a_job()
    add(db, one, two)
    plan_run(db, one)
    plan_run(db, two)
    assert len({claimed.execution.lease_token for claimed in claim(db)}) == 2


def test_the_limit_holds(db: Database) -> None:
    made = [a_job() for _ in range(5)]
    add(db, *made)
    for job in made:
        plan_run(db, job)
    assert [len(claim(db, limit=2)) for _ in range(4)] == [2, 2, 1, 0]


def test_high_lanes_go_first_and_then_the_oldest(db: Database) -> None:
    low, normal, high, older = (
        a_job(lane=Lane.LOW),
        a_job(),
        a_job(lane=Lane.HIGH),
        a_job(),
    )
    add(db, low, normal, high, older)
    for job in (low, normal, high):
        plan_run(db, job)
    plan_run(db, older, NOON - SECOND)
    order = [claim(db, limit=1)[0].job.id for _ in range(4)]
    assert order == [high.id, older.id, normal.id, low.id]


def test_low_work_that_waited_too_long_gets_a_share(db: Database) -> None:
    low = a_job(lane=Lane.LOW)
    high = [a_job(lane=Lane.HIGH) for _ in range(20)]
    add(db, low, *high)
    plan_run(db, low, NOON - 2 * MINUTE)
    for job in high:
        plan_run(db, job)
    got = claim(db, limit=8, ageing=MINUTE)
    assert low.id in {claimed.job.id for claimed in got}
    assert len(got) == 8


def test_aged_work_never_takes_more_than_its_share(db: Database) -> None:
    low = [a_job(lane=Lane.LOW) for _ in range(20)]
    high = [a_job(lane=Lane.HIGH) for _ in range(20)]
    add(db, *low, *high)
    for job in low:
        plan_run(db, job, NOON - 2 * MINUTE)
    for job in high:
        plan_run(db, job)
    got = claim(db, NOON + timedelta(microseconds=999), limit=16, ageing=MINUTE)
    lanes = [claimed.job.lane for claimed in got]
    assert lanes.count(Lane.LOW) == 2
    assert lanes.count(Lane.HIGH) == 14


def overlapping(overlap: Overlap, instances: int = 1) -> OverlapPolicy:
    return OverlapPolicy(max_instances=instances, overlap=overlap)


def test_an_overlapping_run_is_skipped_with_the_reason(db: Database) -> None:
    job = a_job()
    add(db, job)
    plan_run(db, job)
    claim(db)
    second = plan_run(db, job, NOON + MINUTE)
    assert claim(db, NOON + MINUTE) == []
    skipped = look(db, second)
    assert skipped.state is ExecutionState.SKIPPED
    assert skipped.skip_reason is SkipReason.OVERLAP
    assert skipped.completed_at == NOON + MINUTE
    assert job_now(db, job).state is JobState.RUNNING


def test_two_candidates_of_one_job_see_each_other(db: Database) -> None:
    job = a_job(overlapping=overlapping(Overlap.SKIP))
    add(db, job)
    first = plan_run(db, job, NOON - SECOND)
    second = plan_run(db, job)
    (claimed,) = claim(db)
    assert claimed.execution.id == first.id
    assert look(db, second).state is ExecutionState.SKIPPED


def test_as_many_as_allowed_run_beside_each_other(db: Database) -> None:
    job = a_job(overlapping=overlapping(Overlap.QUEUE, instances=2))
    add(db, job)
    for n in range(4):
        plan_run(db, job, NOON - n * SECOND)
    assert len(claim(db)) == 2
    assert claim(db) == []


def test_with_allow_all_of_them_run(db: Database) -> None:
    job = a_job(overlapping=overlapping(Overlap.ALLOW))
    add(db, job)
    for n in range(4):
        plan_run(db, job, NOON - n * SECOND)
    assert len(claim(db)) == 4


def test_a_queued_run_waits_without_being_claimed_again(db: Database) -> None:
    job = a_job(overlapping=overlapping(Overlap.QUEUE))
    add(db, job)
    plan_run(db, job)
    claim(db)
    second = plan_run(db, job, NOON + MINUTE)
    assert claim(db, NOON + MINUTE) == []
    waiting = look(db, second)
    assert (waiting.state, waiting.wait_reason) == (ExecutionState.PENDING, WaitReason.OVERLAP)
    assert waiting.available_at is None
    assert db.read_now(executions.next_available_at) is None


def test_queue_one_lets_one_wait(db: Database) -> None:
    job = a_job(overlapping=overlapping(Overlap.QUEUE_ONE))
    add(db, job)
    runs = [plan_run(db, job, NOON + n * SECOND) for n in range(4)]
    (claimed,) = claim(db, NOON + MINUTE)
    assert claimed.execution.id == runs[0].id
    assert look(db, runs[1]).state is ExecutionState.PENDING
    assert [look(db, one).state for one in runs[2:]] == [ExecutionState.SKIPPED] * 2


def test_a_replacing_run_asks_the_running_one_to_stop(db: Database) -> None:
    job = a_job(overlapping=overlapping(Overlap.REPLACE))
    add(db, job)
    old = plan_run(db, job)
    (running,) = claim(db)
    new = plan_run(db, job, NOON + MINUTE)
    assert claim(db, NOON + MINUTE) == []
    assert look(db, old).cancel_requested_at == NOON + MINUTE
    assert look(db, new).wait_reason is WaitReason.OVERLAP
    end(db, running, Failed(error="stopped"), NOON + MINUTE + SECOND)
    assert look(db, old).state is ExecutionState.CANCELLED
    (claimed,) = claim(db, NOON + MINUTE + SECOND)
    assert claimed.execution.id == new.id


def test_what_may_not_start_does_not_use_up_the_limit(db: Database) -> None:
    stuck, free = a_job(), a_job()
    add(db, stuck, free)
    plan_run(db, stuck, NOON - MINUTE)
    claim(db, NOON - MINUTE)
    for n in range(5):
        plan_run(db, stuck, NOON - (n + 1) * SECOND)
    wanted = plan_run(db, free)
    (claimed,) = claim(db, limit=2)
    assert claimed.execution.id == wanted.id


@pytest.mark.parametrize(
    ("column", "reason"),
    [("is_paused = true", SkipReason.PAUSED), ("schedule_enabled = false", SkipReason.DISABLED)],
)
def test_pausing_and_disabling_hold_at_the_claim(db: Database, column: str, reason: SkipReason) -> None:
    job = a_job()
    add(db, job)
    scheduled = plan_run(db, job)
    forced = plan_run(db, job, cause=Cause.MANUAL)
    sql(db, f"UPDATE jobs SET {column}")
    (claimed,) = claim(db)
    assert claimed.execution.id == forced.id
    assert look(db, scheduled).skip_reason is reason


def test_a_once_job_whose_run_is_skipped_comes_to_rest(db: Database) -> None:
    job = a_job(schedule=Once(run_at=NOON))
    add(db, job)
    run_ = plan_run(db, job)
    assert claim(db, NOON + timedelta(hours=1)) == []
    assert look(db, run_).skip_reason is SkipReason.MISFIRE
    assert job_now(db, job).state is JobState.COMPLETED


def test_a_job_that_became_unreadable_fails_alone(db: Database) -> None:
    bad, good = a_job(), a_job()
    add(db, bad, good)
    broken, fine = plan_run(db, bad), plan_run(db, good)
    sql(db, f"UPDATE jobs SET overlap = 'perhaps' WHERE id = '{bad.id}'")
    assert [claimed.execution.id for claimed in claim(db)] == [fine.id]
    failed = look(db, broken)
    assert failed.state is ExecutionState.FAILED
    assert failed.error is not None
    assert "perhaps" in failed.error


def test_a_change_of_the_job_is_seen_by_the_next_claim(db: Database) -> None:
    job = a_job(timeout=timedelta(seconds=10))
    add(db, job)
    run(db, job)
    sql(db, "UPDATE jobs SET timeout_seconds = 99")
    plan_run(db, job, NOON + MINUTE)
    (claimed,) = claim(db, NOON + MINUTE)
    assert claimed.job.timeout == timedelta(seconds=99)


def test_what_the_scheduler_keeps_is_fresh_though_definitions_are_remembered(db: Database) -> None:
    job = a_job()
    add(db, job)
    run(db, job, outcome=BAD)
    plan(db, an_execution(job=job, scheduled_for=NOON + timedelta(hours=2), cause=Cause.MANUAL))
    got = claim(db, NOON + timedelta(hours=2))
    assert {claimed.job.last_run_at for claimed in got} == {NOON}
    assert {claimed.job.state for claimed in got} == {JobState.SCHEDULED}


def test_a_run_that_begins_beside_a_retry_is_the_last_run(db: Database) -> None:
    """The lock is that of the newest attempt; a retry belongs to a run that began before."""
    job = a_job(overlapping=OverlapPolicy(overlap=Overlap.ALLOW), retry=RetryPolicy(backoff=SECOND))
    add(db, job)
    run(db, job, outcome=BAD)
    plan_run(db, job, NOON + SECOND)
    first, second = claim(db, NOON + MINUTE)
    assert (first.execution.attempt, second.execution.attempt) == (1, 2)
    assert job_now(db, job).last_run_at == NOON + MINUTE
    (lock,) = sql(db, "SELECT lock_token FROM jobs")
    assert lock["lock_token"] == second.execution.lease_token


def test_a_dependant_waits_for_its_parent(db: Database) -> None:
    parent = a_job(name="extract")
    child = a_job(depends_on=(parent.id,))
    add(db, parent, child)
    waiting = plan_run(db, child, covers_from=NOON - MINUTE)
    assert claim(db) == []
    told = look(db, waiting)
    assert told.wait_reason is WaitReason.DEPENDENCY
    assert told.detail is not None
    assert "extract" in told.detail


def test_a_dependant_starts_when_its_parent_has_succeeded(db: Database) -> None:
    parent = a_job()
    child = a_job(depends_on=(parent.id,))
    add(db, parent, child)
    run(db, parent, NOON - SECOND)
    wanted = plan_run(db, child, covers_from=NOON - MINUTE)
    (claimed,) = claim(db)
    assert claimed.execution.id == wanted.id


def test_a_parent_that_is_planned_ahead_is_not_under_way(db: Database) -> None:
    parent = a_job()
    child = a_job(depends_on=(parent.id,))
    add(db, parent, child)
    run(db, parent, NOON - SECOND, Failed(error="no", retryable=False))
    plan_run(db, parent, NOON + MINUTE)
    wanted = plan_run(db, child, covers_from=NOON - MINUTE)
    assert claim(db) == []
    assert look(db, wanted).skip_reason is SkipReason.DEPENDENCY


def test_a_parent_that_will_retry_is_under_way(db: Database) -> None:
    parent = a_job()
    child = a_job(depends_on=(parent.id,))
    add(db, parent, child)
    run(db, parent, NOON - SECOND, BAD)
    wanted = plan_run(db, child, covers_from=NOON - MINUTE)
    assert claim(db) == []
    assert look(db, wanted).wait_reason is WaitReason.DEPENDENCY


def test_a_turn_that_cannot_be_used_goes_to_the_next(db: Database) -> None:
    parent = a_job()
    job = a_job(depends_on=(parent.id,), overlapping=overlapping(Overlap.QUEUE))
    add(db, parent, job)
    run(db, parent, NOON - SECOND)
    plan_run(db, job, NOON, covers_from=NOON - MINUTE)
    (running,) = claim(db)
    behind = plan_run(db, job, NOON + MINUTE, covers_from=NOON)
    forced = plan_run(db, job, NOON + MINUTE, cause=Cause.MANUAL)
    assert claim(db, NOON + MINUTE) == []
    end(db, running, now=NOON + MINUTE)
    started = claim(db, NOON + MINUTE) + claim(db, NOON + MINUTE)
    assert [claimed.execution.id for claimed in started] == [forced.id]
    assert look(db, behind).wait_reason is WaitReason.DEPENDENCY


def test_a_job_that_somebody_holds_does_not_hold_up_the_others(postgres_db: Database) -> None:
    """On SQLite whoever holds a job holds the whole database, and only for a moment."""
    held, free = a_job(), a_job()
    add(postgres_db, held, free)
    for n in range(5):
        plan_run(postgres_db, held, NOON - (n + 1) * SECOND)
    wanted = plan_run(postgres_db, free)

    def holding(conn: Connection) -> list[str]:
        jobs.lock(conn, held.id)
        return [claimed.execution.id for claimed in claim(postgres_db, limit=1)]

    assert postgres_db.write_now(holding) == [wanted.id]


def test_a_stray_execution_does_not_hold_up_the_others(db: Database) -> None:
    gone, there = a_job(), a_job()
    add(db, gone, there)
    stray = plan_run(db, gone, NOON - SECOND)
    wanted = plan_run(db, there)
    sql(db, f"DELETE FROM jobs WHERE id = '{gone.id}'")
    sql(db, f"UPDATE executions SET state = 'queued', available_at = scheduled_for WHERE id = '{stray.id}'")
    (claimed,) = claim(db, limit=1)
    assert claimed.execution.id == wanted.id
    assert look(db, stray).state is ExecutionState.CANCELLED
