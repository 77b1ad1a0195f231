"""settle() over every kind of outcome, running execution and retry policy, held against the invariants."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from noonday.domain.errors import Conflict
from noonday.domain.execution import Execution, ExecutionState, WaitReason
from noonday.domain.job import Job, JobState, OnLost, RetryPolicy
from noonday.domain.lifecycle import EXECUTION_MOVES, MAX_LOSSES, Settlement, settle
from noonday.domain.outcome import (
    NOTHING,
    Accepted,
    Cancelled,
    Completed,
    Deferred,
    Failed,
    Lost,
    Outcome,
    Parked,
    Released,
    Result,
    TimedOut,
)
from tests.factories import NOON, a_job, a_running_execution, an_execution

NOW = NOON + timedelta(minutes=10)
SOME = Result(items_processed=7, status_code=503)

OUTCOMES: dict[str, Outcome] = {
    "completed": Completed(result=SOME),
    "failed": Failed(error="503", stack="at line 1", result=SOME),
    "failed, wants time": Failed(error="429", retry_after=timedelta(hours=2)),
    "failed for good": Failed(error="404", retryable=False),
    "timed out": TimedOut(after=timedelta(seconds=90), result=SOME),
    "cancelled": Cancelled(by="ann", result=SOME),
    "lost": Lost(detail="instance-1 fell silent"),
    "released": Released(),
    "parked": Parked(detail="nobody knows task x"),
    "deferred": Deferred(domain="a.test", until=NOW + timedelta(seconds=60), detail="its breaker is open"),
    "accepted": Accepted(heartbeat=timedelta(seconds=45), cancel_url="http://t/cancel", result=SOME),
}
MAX_RETRIES = (0, 1, 3)
LOSSES = (0, 1, MAX_LOSSES - 2, MAX_LOSSES - 1)


def every_running_execution(max_retries: int) -> list[Execution]:
    made = []
    for failures, losses, cancelling, remote, attempt in product(
        range(max_retries + 1), LOSSES, (False, True), (False, True), (1, 9)
    ):
        made.append(
            a_running_execution(
                failures=failures,
                losses=losses,
                cancel_requested_at=NOON if cancelling else None,
                cancel_requested_by="bob" if cancelling else None,
                remote=remote,
                cancel_url="http://t/old" if remote else None,
                result=Result(value="accepted") if remote else NOTHING,
                attempt=attempt,
                progress=0.5,
                progress_message="half",
                error="an earlier error",
                detail="an earlier detail",
            )
        )
    return made


def every_job(max_retries: int) -> list[Job]:
    return [
        a_job(
            state=state,
            retry=RetryPolicy(max_retries=max_retries, on_lost=on_lost, jitter=jitter),
        )
        for on_lost, jitter, state in product(
            OnLost, (False, True), (JobState.RUNNING, JobState.PAUSED, JobState.CANCELLED)
        )
    ]


CASES = [
    (job, execution, name)
    for max_retries in MAX_RETRIES
    for job in every_job(max_retries)
    for execution in every_running_execution(max_retries)
    for name in OUTCOMES
]


def expected_state(job: Job, execution: Execution, kind: str) -> str:
    """The whole table once more, written the other way round: by outcome, then by what decides."""
    if kind == "accepted":
        return "running"
    if kind == "completed":
        return "completed"
    if kind == "cancelled" or execution.cancel_requested_at or job.state == "cancelled":
        return "cancelled"
    if kind == "failed for good":
        return "failed"
    if kind in ("failed", "failed, wants time", "timed out"):
        return "pending" if execution.failures < job.retry.max_retries else "failed"
    if kind == "lost":
        return "failed" if job.retry.on_lost == "fail" or execution.losses == MAX_LOSSES - 1 else "pending"
    return {"released": "queued", "parked": "pending", "deferred": "pending"}[kind]


def check_final(execution: Execution, after: Execution) -> None:
    assert after.completed_at == NOW
    assert after.wait_reason is None
    assert after.instance_id == execution.instance_id, "the history says who ran it"
    if after.state is ExecutionState.FAILED:
        assert after.error


def check_waiting(after: Execution, kind: str) -> None:
    assert after.completed_at is None
    assert (after.progress, after.progress_message) == (None, None)
    assert after.instance_id is None
    if kind == "parked":
        assert (after.available_at, after.wait_reason) == (None, WaitReason.UNKNOWN_TASK)
    elif kind == "released":
        assert (after.available_at, after.wait_reason) == (NOW, None)
    else:
        assert after.wait_reason is WaitReason.RETRY
        assert after.available_at is not None
        assert after.available_at >= NOW
        if kind == "lost":
            assert after.available_at == NOW
        if kind == "failed, wants time":
            assert after.available_at == NOW + timedelta(hours=2)


def check_counts(job: Job, execution: Execution, after: Execution, kind: str) -> None:
    failed = kind in ("failed", "failed, wants time", "failed for good", "timed out")
    assert after.failures == execution.failures + failed
    assert after.failures <= job.retry.max_retries + 1
    assert after.losses == execution.losses + (kind == "lost")
    assert after.losses <= MAX_LOSSES
    assert after.attempt == execution.attempt, "the next claim counts"


def check_attempt(execution: Execution, done: Settlement, kind: str) -> None:
    attempt = done.attempt
    assert attempt is not None
    if kind == "deferred":  # only what somebody cancelled meanwhile leaves a row
        assert attempt.outcome == "cancelled"
        return
    assert attempt.outcome == kind.split(",", maxsplit=1)[0].removesuffix(" for good").replace(" ", "_")
    assert (attempt.execution_id, attempt.number) == (execution.id, execution.attempt)
    assert (attempt.started_at, attempt.completed_at) == (execution.started_at, NOW)
    assert attempt.instance_id == execution.instance_id
    assert (attempt.error is None) is (kind == "completed")
    assert done.execution.result == attempt.result


def check_deferred(execution: Execution, done: Settlement) -> None:
    """As before its claim but for the wait: no attempt, no failure, and what earlier ones left stays."""
    after = done.execution
    assert done.attempt is None
    assert (after.available_at, after.wait_reason) == (NOW + timedelta(seconds=60), WaitReason.BREAKER)
    assert after.detail == "its breaker is open"
    assert after.attempt == execution.attempt - 1, "its number is given to the next one"
    assert (after.failures, after.losses) == (execution.failures, execution.losses)
    assert (after.error, after.result) == (execution.error, execution.result)
    assert (after.lease_token, after.lease_expires_at, after.deadline_at) == (None, None, None)
    assert (after.remote, after.cancel_url, after.instance_id, after.started_at) == (False, None, None, None)
    assert after.admitted, "it is not judged again as if it were new"
    assert execution.cancel_requested_at is None, "never again after a cancel"


NEVER_TOUCHED = (
    *("id", "job_id", "cause", "scheduled_for", "lane", "number", "covers_from", "triggered_by", "config"),
    *("cancel_requested_at", "cancel_requested_by", "claimed_at", "started_at", "trace_id", "created_at"),
)


def check(job: Job, execution: Execution, kind: str) -> None:
    done = settle(job, execution, OUTCOMES[kind], NOW, chance=0.5)
    after = done.execution
    assert after.state == expected_state(job, execution, kind)
    assert after.state == execution.state or after.state in EXECUTION_MOVES[execution.state]
    assert done.final is not after.state.open
    if kind == "deferred" and not done.final:
        check_deferred(execution, done)
        return
    assert all(getattr(after, name) == getattr(execution, name) for name in NEVER_TOUCHED)
    if kind == "accepted":
        return
    assert (after.lease_token, after.lease_expires_at, after.deadline_at) == (None, None, None)
    assert (after.remote, after.cancel_url) == (False, None)
    check_counts(job, execution, after, kind)
    check_attempt(execution, done, kind)
    if done.final:
        check_final(execution, after)
    else:
        check_waiting(after, kind)
        assert execution.cancel_requested_at is None, "never again after a cancel"


@pytest.mark.parametrize("kind", OUTCOMES)
def test_every_combination_is_settled_by_the_rules(kind: str) -> None:
    cases = [(job, execution) for job, execution, name in CASES if name == kind]
    assert len(cases) == 12 * 32 * (1 + 2 + 4)
    for job, execution in cases:
        check(job, execution, kind)


def test_accepted_keeps_the_lease_and_lives_by_heartbeats() -> None:
    execution = a_running_execution()
    done = settle(a_job(), execution, OUTCOMES["accepted"], NOW)
    changed = {
        one.name: getattr(done.execution, one.name)
        for one in fields(Execution)
        if getattr(done.execution, one.name) != getattr(execution, one.name)
    }
    assert changed == {
        "remote": True,
        "cancel_url": "http://t/cancel",
        "lease_expires_at": NOW + timedelta(seconds=45),
        "result": SOME,
    }
    assert done.attempt is None
    assert not done.final


@pytest.mark.parametrize("state", [state for state in ExecutionState if state is not ExecutionState.RUNNING])
@pytest.mark.parametrize("kind", OUTCOMES)
def test_only_a_running_execution_is_settled(state: ExecutionState, kind: str) -> None:
    with pytest.raises(Conflict, match=str(state)):
        settle(a_job(), an_execution(state=state), OUTCOMES[kind], NOW)


def test_success_after_failures_leaves_no_error_behind() -> None:
    execution = a_running_execution(error="boom", stack="at", failures=2, detail="retry 2 of 3")
    after = settle(a_job(), execution, Completed(), NOW).execution
    assert (after.error, after.stack, after.detail, after.failures) == (None, None, None, 2)


def words(outcome: Outcome, **changes: Any) -> tuple[str | None, str | None]:
    job = changes.pop("job", a_job())
    after = settle(job, a_running_execution(**changes), outcome, NOW).execution
    return after.error, after.detail


def test_the_words_say_what_happened() -> None:
    fail = a_job(retry=RetryPolicy(on_lost=OnLost.FAIL))
    assert words(Failed(error="boom"), failures=1) == ("boom", "retry 2 of 3")
    assert words(Failed(error="boom"), failures=3) == ("boom", None)
    assert words(Failed(error="404", retryable=False)) == ("404", "not worth a retry")
    assert words(TimedOut(after=timedelta(seconds=90)))[0] == "took longer than 90 s"
    assert words(Cancelled(by="ann")) == (None, "cancelled by ann")
    assert words(Cancelled(), cancel_requested_by="bob") == (None, "cancelled by bob")
    assert words(Failed(error="boom"), cancel_requested_at=NOON) == ("boom", "cancelled")
    assert words(Lost(detail="silent")) == ("silent", "lost 1 of at most 5 times")
    assert words(Lost(detail="silent"), losses=4) == ("lost 5 times, given up: silent", None)
    assert words(Lost(detail="silent"), job=fail) == (
        "lost, and the job is not to be run again then: silent",
        None,
    )
    assert words(Parked(detail="unknown")) == (None, "unknown")
    assert words(Released()) == (None, "the instance shut down")


def test_a_lost_remote_run_keeps_what_it_told_when_it_accepted() -> None:
    told = Result(metadata={"ticket": 4711})
    done = settle(a_job(), a_running_execution(remote=True, result=told), Lost(detail="silent"), NOW)
    assert done.execution.result == told


def test_an_execution_always_ends_however_its_attempts_end() -> None:
    """E3, E6: failing and losing cannot go on for ever."""
    job = a_job(retry=RetryPolicy(max_retries=3, backoff=timedelta()))
    for bad in (Failed(error="boom"), TimedOut(after=timedelta(1)), Lost(detail="silent")):
        execution, tries = a_running_execution(), 0
        while execution.state is ExecutionState.RUNNING:
            done = settle(job, execution, bad, NOW)
            tries += 1
            execution = done.execution
            if not done.final:
                execution = replace(execution, state=ExecutionState.RUNNING, attempt=execution.attempt + 1)
        assert execution.state is ExecutionState.FAILED
        assert tries == (MAX_LOSSES if isinstance(bad, Lost) else 4)
