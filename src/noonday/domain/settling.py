"""What follows when an attempt ends: the end of its execution, another try, or a wait."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import assert_never

from noonday.domain.errors import Conflict
from noonday.domain.execution import Attempt, Execution, ExecutionState, WaitReason
from noonday.domain.job import Job, JobState, OnLost
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
from noonday.domain.retry import retry_at

MAX_LOSSES = 5  # a run that takes its worker with it each time is ended, for the sake of the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    execution: Execution  # with its new values
    attempt: Attempt | None  # the row of history; None while the attempt goes on, or if it never began
    final: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Next:
    """Where an execution goes from here; `available_at` only where it waits."""

    state: ExecutionState
    available_at: datetime | None = None
    wait_reason: WaitReason | None = None
    detail: str | None = None
    error: str | None = None


_Ended = Completed | Failed | TimedOut | Cancelled | Lost | Released | Parked


def settle(
    job: Job, execution: Execution, outcome: Outcome, now: datetime, chance: float = 0.0
) -> Settlement:
    """What becomes of a running execution when its attempt ends; `chance` in [0, 1) jitters the retry."""
    if execution.state is not ExecutionState.RUNNING:
        raise Conflict(f"execution {execution.id} is {execution.state}: only a running one can be settled")
    if isinstance(outcome, Accepted):
        return Settlement(execution=_accepted(execution, outcome, now), attempt=None, final=False)
    if isinstance(outcome, Deferred):
        if not _stopping(job, execution):
            return Settlement(execution=_deferred(execution, outcome), attempt=None, final=False)
        outcome = Cancelled()
    attempt = _attempt(execution, outcome, now)
    following = _next(job, execution, outcome, now, chance)
    final = not following.state.open
    settled = replace(
        execution,
        state=following.state,
        available_at=execution.available_at if final else following.available_at,
        wait_reason=following.wait_reason,
        detail=following.detail,
        failures=execution.failures + isinstance(outcome, Failed | TimedOut),
        losses=execution.losses + isinstance(outcome, Lost),
        lease_token=None,
        lease_expires_at=None,
        deadline_at=None,
        remote=False,
        cancel_url=None,
        instance_id=execution.instance_id if final else None,
        completed_at=now if final else None,
        progress=execution.progress if final else None,
        progress_message=execution.progress_message if final else None,
        error=following.error,
        stack=attempt.stack,
        result=attempt.result,
    )
    return Settlement(execution=settled, attempt=attempt, final=final)


def _accepted(execution: Execution, outcome: Accepted, now: datetime) -> Execution:
    return replace(
        execution,
        remote=True,
        cancel_url=outcome.cancel_url,
        lease_expires_at=now + outcome.heartbeat,
        result=outcome.result,
    )


def _deferred(execution: Execution, outcome: Deferred) -> Execution:
    """As before the claim, but for the wait: what earlier attempts left behind stays, and its number too."""
    return replace(
        execution,
        state=ExecutionState.PENDING,
        available_at=outcome.until,
        wait_reason=WaitReason.BREAKER,
        detail=outcome.detail,
        attempt=execution.attempt - 1,
        started_at=None,
        lease_token=None,
        lease_expires_at=None,
        deadline_at=None,
        remote=False,
        cancel_url=None,
        instance_id=None,
        progress=None,
        progress_message=None,
    )


def _attempt(execution: Execution, outcome: _Ended, now: datetime) -> Attempt:
    kind, error, result = _told(outcome)
    return Attempt(
        execution_id=execution.id,
        number=execution.attempt,
        outcome=kind,
        started_at=execution.started_at,
        completed_at=now,
        instance_id=execution.instance_id,
        error=error,
        stack=outcome.stack if isinstance(outcome, Failed) else None,
        # A remote run that fell silent has still told what it told when it accepted.
        result=execution.result if isinstance(outcome, Lost) else result,
    )


def _told(outcome: _Ended) -> tuple[str, str | None, Result]:
    match outcome:
        case Completed():
            return "completed", None, outcome.result
        case Failed():
            return "failed", outcome.error, outcome.result
        case TimedOut():
            return "timed_out", _timed_out(outcome), outcome.result
        case Cancelled():
            return "cancelled", _cancelled_by(outcome.by), outcome.result
        case Lost():
            return "lost", outcome.detail, NOTHING
        case Released():
            return "released", outcome.detail, NOTHING
        case Parked():
            return "parked", outcome.detail, NOTHING
        case _:
            assert_never(outcome)


def _next(job: Job, execution: Execution, outcome: _Ended, now: datetime, chance: float) -> _Next:
    if not isinstance(outcome, Completed) and _stopping(job, execution):
        return _cancelled(execution, outcome)
    match outcome:
        case Completed():
            return _Next(state=ExecutionState.COMPLETED)
        case Failed() | TimedOut():
            failed = outcome if isinstance(outcome, Failed) else Failed(error=_timed_out(outcome))
            return _after_failure(job, execution, failed, now, chance)
        case Cancelled():
            return _cancelled(execution, outcome)
        case Lost():
            return _after_loss(job, execution, outcome, now)
        case Released():
            return _Next(
                state=ExecutionState.QUEUED, available_at=_not_early(execution, now), detail=outcome.detail
            )
        case Parked():
            return _waiting(WaitReason.UNKNOWN_TASK, None, outcome.detail)
        case _:
            assert_never(outcome)


def _stopping(job: Job, execution: Execution) -> bool:
    return execution.cancel_requested_at is not None or job.state is JobState.CANCELLED


def _cancelled(execution: Execution, outcome: _Ended) -> _Next:
    by = outcome.by if isinstance(outcome, Cancelled) else ""
    _, error, _ = _told(outcome)
    return _Next(
        state=ExecutionState.CANCELLED,
        detail=_cancelled_by(by or execution.cancel_requested_by),
        error=error if isinstance(outcome, Failed | TimedOut | Lost) else None,
    )


def _after_failure(job: Job, execution: Execution, outcome: Failed, now: datetime, chance: float) -> _Next:
    failures = execution.failures + 1
    again_at = retry_at(job.retry, failures, now, outcome.retry_after, chance)
    if again_at is None or not outcome.retryable:
        detail = None if outcome.retryable else "not worth a retry"
        return _Next(state=ExecutionState.FAILED, detail=detail, error=outcome.error)
    detail = f"retry {failures} of {job.retry.max_retries}"
    return _waiting(WaitReason.RETRY, again_at, detail, outcome.error)


def _after_loss(job: Job, execution: Execution, outcome: Lost, now: datetime) -> _Next:
    """Losing its worker is not the job's own failure: it starts again at once and burns no retry."""
    losses = execution.losses + 1
    if job.retry.on_lost is OnLost.FAIL:
        error = f"lost, and the job is not to be run again then: {outcome.detail}"
        return _Next(state=ExecutionState.FAILED, error=error)
    if losses >= MAX_LOSSES:
        error = f"lost {losses} times, given up: {outcome.detail}"
        return _Next(state=ExecutionState.FAILED, error=error)
    again_at = _not_early(execution, now)
    return _waiting(
        WaitReason.RETRY, again_at, f"lost {losses} of at most {MAX_LOSSES} times", outcome.detail
    )


def _not_early(execution: Execution, now: datetime) -> datetime:
    """At once; but one that was claimed ahead of its moment still waits for it."""
    return max(now, execution.available_at or now)


def _waiting(
    reason: WaitReason, available_at: datetime | None, detail: str, error: str | None = None
) -> _Next:
    return _Next(
        state=ExecutionState.PENDING,
        available_at=available_at,
        wait_reason=reason,
        detail=detail,
        error=error,
    )


def _timed_out(outcome: TimedOut) -> str:
    return f"took longer than {outcome.after.total_seconds():g} s"


def _cancelled_by(who: str | None) -> str:
    return f"cancelled by {who}" if who else "cancelled"
