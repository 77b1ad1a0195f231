from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from noonday.domain.execution import Cause, ExecutionState, SkipReason, WaitReason
from noonday.domain.job import JobState, Overlap, OverlapPolicy, RetryPolicy
from noonday.domain.outcome import (
    Accepted,
    Cancelled,
    Completed,
    Failed,
    Lost,
    Outcome,
    Parked,
    Released,
    Result,
    TimedOut,
    Usage,
)
from noonday.domain.schedule import Interval, IntervalUnit, Manual, Once
from noonday.ports import Claim
from noonday.store import executions, history, jobs
from noonday.store.database import Database
from noonday.store.executions import Ending
from tests.factories import LEASE, NOON, a_job
from tests.store.store_steps import (
    BAD,
    MINUTE,
    OK,
    SECOND,
    add,
    claim,
    end,
    ending,
    job_now,
    look,
    plan_run,
    run,
    settle,
    sql,
)

FULL = Result(
    items_processed=3,
    items_succeeded=2,
    items_failed=1,
    status_code=200,
    bytes_received=77,
    output_tail="tail",
    value={"a": [1, None]},
    metadata={"m": "x"},
    usage=Usage(cpu_time_ms=5, memory_peak_mb=1.5),
)


def running(db: Database, **changes: object) -> Claim:
    job = a_job(**changes)
    add(db, job)
    plan_run(db, job)
    (claimed,) = claim(db)
    return claimed


def test_a_completed_run_is_in_the_history_with_its_result(db: Database) -> None:
    claimed = running(db)
    settlement = end(db, claimed, Completed(result=FULL))
    execution = look(db, claimed.execution)
    assert execution == settlement.execution
    assert (execution.state, execution.completed_at) == (ExecutionState.COMPLETED, NOON + SECOND)
    assert execution.result == FULL
    assert (execution.lease_token, execution.lease_expires_at) == (None, None)
    (attempt,) = db.read_now(lambda conn: history.attempts(conn, execution.id))
    assert attempt == settlement.attempt
    assert attempt.result == FULL


def test_a_job_comes_to_rest_and_remembers_how_it_went(db: Database) -> None:
    claimed = running(db, next_run_at=NOON + MINUTE)
    end(db, claimed)
    after = job_now(db, claimed.job)
    assert (after.state, after.last_status, after.last_run_at) == (JobState.SCHEDULED, "completed", NOON)
    assert sql(db, "SELECT lock_token, lock_acquired_at FROM jobs") == [
        {"lock_token": None, "lock_acquired_at": None}
    ]


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(OK, JobState.COMPLETED), (Failed(error="no", retryable=False), JobState.FAILED)],
    ids=["completed", "failed"],
)
def test_a_job_without_a_future_ends(db: Database, outcome: Outcome, state: JobState) -> None:
    claimed = running(db, schedule=Once(run_at=NOON))
    end(db, claimed, outcome)
    assert job_now(db, claimed.job).state is state


def test_a_stale_token_changes_nothing(db: Database) -> None:
    claimed = running(db)
    before, job = look(db, claimed.execution), job_now(db, claimed.job)
    stale = Ending(execution_id=claimed.execution.id, token="not mine", outcome=OK)
    assert settle(db, [stale]) == []
    assert look(db, claimed.execution) == before
    assert job_now(db, claimed.job) == job
    assert db.read_now(lambda conn: history.attempts(conn, before.id)) == []


def test_a_zombie_changes_nothing_when_it_wakes(db: Database) -> None:
    zombie = running(db)
    lost = NOON + LEASE + SECOND
    (found,) = db.write_now(lambda conn: executions.expired(conn, lost))
    settle(db, [found], lost)
    (second,) = claim(db, lost)
    assert second.execution.id == zombie.execution.id
    assert second.execution.attempt == 2
    assert settle(db, [ending(zombie, BAD)], lost + SECOND) == []
    assert look(db, second.execution) == second.execution


def test_settling_may_be_repeated(db: Database) -> None:
    claimed = running(db)
    assert len(settle(db, [ending(claimed)])) == 1
    after = look(db, claimed.execution)
    assert settle(db, [ending(claimed, BAD)], NOON + MINUTE) == []
    assert look(db, claimed.execution) == after


def test_a_failure_is_retried_later(db: Database) -> None:
    claimed = running(db, retry=RetryPolicy(max_retries=2, backoff=timedelta(seconds=10)))
    end(db, claimed, BAD)
    waiting = look(db, claimed.execution)
    assert (waiting.state, waiting.wait_reason) == (ExecutionState.PENDING, WaitReason.RETRY)
    assert waiting.available_at == NOON + SECOND + timedelta(seconds=10)
    job = job_now(db, claimed.job)
    assert (job.state, job.retry_count) == (JobState.SCHEDULED, 1)
    assert claim(db, NOON + 5 * SECOND) == []
    (again,) = claim(db, NOON + 11 * SECOND)
    assert (again.execution.id, again.execution.attempt) == (claimed.execution.id, 2)
    end(db, again, OK, NOON + 12 * SECOND)
    assert [a.outcome for a in db.read_now(lambda c: history.attempts(c, again.execution.id))] == [
        "failed",
        "completed",
    ]
    assert job_now(db, claimed.job).retry_count == 0
    assert job_now(db, claimed.job).last_run_at == NOON


def test_a_final_failure_is_told_to_the_outbox(db: Database) -> None:
    claimed = running(db, name="digest", retry=RetryPolicy(max_retries=0))
    end(db, claimed, BAD)
    assert look(db, claimed.execution).state is ExecutionState.FAILED
    (letter,) = sql(db, "SELECT kind FROM outbox")
    assert letter["kind"] == "execution.failed"


def test_a_retry_is_not_yet_told_to_the_outbox(db: Database) -> None:
    end(db, running(db), BAD)
    assert sql(db, "SELECT kind FROM outbox") == []


def test_a_lost_run_starts_again_at_once(db: Database) -> None:
    claimed = running(db)
    end(db, claimed, Lost(detail="the worker died"))
    (again,) = claim(db, NOON + SECOND)
    assert (again.execution.id, again.execution.attempt, again.execution.losses) == (
        claimed.execution.id,
        2,
        1,
    )


def test_a_released_run_starts_again_at_once(db: Database) -> None:
    claimed = running(db)
    end(db, claimed, Released())
    (again,) = claim(db, NOON + SECOND, instance="instance-2")
    assert (again.execution.instance_id, again.execution.failures) == ("instance-2", 0)


def test_an_unknown_task_is_parked_and_shown(db: Database) -> None:
    claimed = running(db)
    end(db, claimed, Parked(detail="nobody knows noop"))
    parked = look(db, claimed.execution)
    assert (parked.state, parked.wait_reason) == (ExecutionState.PENDING, WaitReason.UNKNOWN_TASK)
    assert parked.detail == "nobody knows noop"
    assert claim(db, NOON + timedelta(days=1)) == []


def test_an_accepted_run_goes_on_and_lives_by_heartbeats(db: Database) -> None:
    claimed = running(db)
    accepted = Accepted(heartbeat=MINUTE, cancel_url="http://a.example/stop")
    settlement = end(db, claimed, accepted)
    remote = look(db, claimed.execution)
    assert not settlement.final
    assert (remote.state, remote.remote) == (ExecutionState.RUNNING, True)
    assert remote.lease_expires_at == NOON + SECOND + MINUTE
    assert remote.lease_token == claimed.execution.lease_token
    assert job_now(db, claimed.job).state is JobState.RUNNING
    assert sql(db, "SELECT lock_token FROM jobs") == [{"lock_token": remote.lease_token}]
    end(db, claimed, Completed(result=FULL), NOON + 5 * SECOND)
    assert look(db, claimed.execution).state is ExecutionState.COMPLETED


@pytest.mark.parametrize(
    "outcome",
    [Cancelled(by="ada"), TimedOut(after=SECOND), Lost(detail="gone"), BAD],
    ids=lambda o: type(o).__name__,
)
def test_what_was_asked_to_stop_is_cancelled_and_not_retried(db: Database, outcome: Outcome) -> None:
    claimed = running(db)
    db.write_now(lambda conn: executions.request_cancel(conn, claimed.execution.id, "ada", NOON))
    end(db, claimed, outcome)
    after = look(db, claimed.execution)
    assert after.state is ExecutionState.CANCELLED
    assert claim(db, NOON + timedelta(days=1)) == []


def test_a_batch_settles_each_in_its_own_way(db: Database) -> None:
    made = [a_job(retry=RetryPolicy(max_retries=0)) for _ in range(6)]
    add(db, *made)
    for job in made:
        plan_run(db, job)
    claims = claim(db)
    outcomes: list[Outcome] = [OK, BAD, Released(), Lost(detail="x"), Cancelled(), Parked(detail="y")]
    told = [ending(c, o) for c, o in zip(claims, outcomes, strict=True)]
    told.append(replace(told[0], token="stale"))
    told[0], told[-1] = told[-1], told[0]
    assert len(settle(db, told)) == 6
    states = [look(db, c.execution).state.value for c in claims]
    assert states == ["completed", "failed", "queued", "pending", "cancelled", "pending"]


def test_an_outcome_that_no_database_can_store_harms_itself_alone(db: Database) -> None:
    one, two = a_job(), a_job()
    add(db, one, two)
    plan_run(db, one)
    plan_run(db, two)
    claims = {c.job.id: c for c in claim(db)}
    nasty = Result(
        output_tail="nul \x00 and half a pair \ud800",
        value={"nan": float("nan"), "nul\x00": "\x00", "half": "\udfff", "set": {1}},
    )
    poison = Completed(result=nasty)
    broken = Failed(error=None, stack=b"bytes")  # type: ignore[arg-type]
    endings = [ending(claims[one.id], poison), ending(claims[two.id], broken)]
    assert len(settle(db, endings)) == 2
    kept = look(db, claims[one.id].execution)
    assert kept.state is ExecutionState.COMPLETED
    assert kept.result.output_tail is not None
    assert "\x00" not in kept.result.output_tail
    assert look(db, claims[two.id].execution).state in (ExecutionState.PENDING, ExecutionState.FAILED)


def test_the_next_in_the_queue_gets_its_turn(db: Database) -> None:
    job = a_job(overlapping=OverlapPolicy(overlap=Overlap.QUEUE))
    add(db, job)
    runs = [plan_run(db, job, NOON + n * SECOND) for n in range(3)]
    now = NOON + MINUTE
    order = []
    for _ in runs:
        (claimed,) = claim(db, now)
        assert claim(db, now) == []
        order.append(claimed.execution.id)
        now += SECOND
        end(db, claimed, OK, now)
    assert order == [one.id for one in runs]


def test_the_lock_is_that_of_the_newest_run(db: Database) -> None:
    job = a_job(overlapping=OverlapPolicy(max_instances=2, overlap=Overlap.QUEUE))
    add(db, job)
    plan_run(db, job)
    (first,) = claim(db)
    plan_run(db, job, NOON + SECOND)
    (second,) = claim(db, NOON + SECOND)
    end(db, second, OK, NOON + 2 * SECOND)
    assert sql(db, "SELECT lock_token, status FROM jobs") == [
        {"lock_token": first.execution.lease_token, "status": "running"}
    ]


def test_a_waiting_child_is_judged_again_when_its_parent_ends(db: Database) -> None:
    parent = a_job()
    child = a_job(depends_on=(parent.id,))
    add(db, parent, child)
    waiting = plan_run(db, child, covers_from=NOON - MINUTE)
    plan_run(db, parent)
    (claimed,) = claim(db)
    assert claimed.job.id == parent.id
    end(db, claimed)
    (started,) = claim(db, NOON + SECOND)
    assert started.execution.id == waiting.id


def test_a_child_is_skipped_when_its_parent_failed_and_revived_when_it_succeeds(db: Database) -> None:
    parent = a_job(retry=RetryPolicy(max_retries=0))
    child = a_job(depends_on=(parent.id,))
    add(db, parent, child)
    waiting = plan_run(db, child, NOON + SECOND, covers_from=NOON - MINUTE)
    run(db, parent, NOON, BAD)
    assert claim(db, NOON + 2 * SECOND) == []
    assert look(db, waiting).skip_reason is SkipReason.DEPENDENCY
    plan_run(db, parent, NOON, cause=Cause.MANUAL)
    (retried,) = claim(db, NOON + 3 * SECOND)
    end(db, retried, OK, NOON + 4 * SECOND)
    (revived,) = claim(db, NOON + 4 * SECOND)
    assert revived.execution.id == waiting.id
    assert revived.execution.skip_reason is None


def test_a_follower_runs_after_a_success_for_the_same_period(db: Database) -> None:
    first = a_job()
    after = a_job(schedule=Manual(), on_success_of=(first.id,))
    add(db, first, after)
    run(db, first)
    (follower,) = claim(db, NOON + SECOND)
    assert follower.job.id == after.id
    assert follower.execution.cause is Cause.UPSTREAM
    assert follower.execution.scheduled_for == NOON
    assert follower.execution.number == 1


def test_a_follower_does_not_run_after_a_failure(db: Database) -> None:
    first = a_job(retry=RetryPolicy(max_retries=0))
    add(db, first, a_job(schedule=Manual(), on_success_of=(first.id,)))
    run(db, first, NOON, BAD)
    assert claim(db, NOON + SECOND) == []


def test_a_paused_follower_is_recorded_as_skipped(db: Database) -> None:
    first = a_job()
    after = a_job(schedule=Manual(), on_success_of=(first.id,), paused=True, state=JobState.PAUSED)
    add(db, first, after)
    run(db, first)
    assert claim(db, NOON + SECOND) == []
    (skipped,) = db.read_now(lambda conn: history.page(conn, after.id)).items
    assert skipped.skip_reason is SkipReason.PAUSED
    assert job_now(db, after).state is JobState.PAUSED


def test_two_parents_of_one_period_fire_the_follower_once(db: Database) -> None:
    one, two = a_job(), a_job()
    after = a_job(schedule=Manual(), on_success_of=(one.id, two.id))
    add(db, one, two, after)
    plan_run(db, one)
    plan_run(db, two)
    settle(db, [ending(claimed) for claimed in claim(db)])
    assert db.read_now(lambda conn: history.page(conn, after.id)).total == 1


def test_the_end_of_a_fixed_delay_run_makes_the_next_one_due(db: Database) -> None:
    schedule = Interval(count=30, unit=IntervalUnit.SECONDS, after_completion=True)
    claimed = running(db, schedule=schedule, next_run_at=None)
    end(db, claimed, OK, NOON + 5 * SECOND)
    after = job_now(db, claimed.job)
    assert (after.next_run_at, after.state) == (NOON + 35 * SECOND, JobState.SCHEDULED)


def test_a_failing_attempt_of_a_fixed_delay_job_does_not(db: Database) -> None:
    schedule = Interval(count=30, unit=IntervalUnit.SECONDS, after_completion=True)
    claimed = running(db, schedule=schedule, next_run_at=None)
    end(db, claimed, BAD)
    assert job_now(db, claimed.job).next_run_at is None


def test_a_run_whose_job_became_unreadable_still_ends(db: Database) -> None:
    claimed = running(db)
    sql(db, "UPDATE jobs SET target = NULL, url = NULL")
    end(db, claimed, OK)
    assert look(db, claimed.execution).state is ExecutionState.COMPLETED


def test_a_run_whose_job_is_gone_has_been_cancelled(db: Database) -> None:
    claimed = running(db)
    db.write_now(lambda conn: jobs.remove(conn, claimed.job.id))
    assert settle(db, [ending(claimed)]) == []
    assert look(db, claimed.execution).state is ExecutionState.CANCELLED
    token = {claimed.execution.id: claimed.execution.lease_token or ""}
    assert db.write_now(lambda conn: executions.renew(conn, token, NOON + LEASE)) == {}


def test_settling_nothing_is_nothing(db: Database) -> None:
    assert settle(db, []) == []
