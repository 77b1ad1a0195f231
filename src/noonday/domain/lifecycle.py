"""The states of jobs and executions and the moves between them; settling tells what an ended attempt does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from noonday.domain.errors import MoveRefused
from noonday.domain.execution import ExecutionState
from noonday.domain.fixed_delay import next_after_completion
from noonday.domain.job import Job, JobState
from noonday.domain.schedule import Cron, Event, Frequency, Interval, Manual
from noonday.domain.settling import MAX_LOSSES, Settlement, settle

__all__ = [
    "EXECUTION_MOVES",
    "MAX_LOSSES",
    "MOVES",
    "Settlement",
    "can",
    "move",
    "next_after_completion",
    "resting_state",
    "settle",
]

MOVES: Mapping[JobState, frozenset[JobState]] = {
    JobState.PENDING: frozenset({JobState.SCHEDULED, JobState.RUNNING, JobState.CANCELLED}),
    JobState.SCHEDULED: frozenset({JobState.RUNNING, JobState.PENDING, JobState.PAUSED, JobState.CANCELLED}),
    JobState.RUNNING: frozenset(
        {JobState.COMPLETED, JobState.FAILED, JobState.SCHEDULED, JobState.CANCELLED}
    ),
    JobState.PAUSED: frozenset({JobState.SCHEDULED, JobState.PENDING, JobState.CANCELLED}),
    JobState.COMPLETED: frozenset({JobState.SCHEDULED}),
    JobState.FAILED: frozenset({JobState.PENDING}),
    JobState.CANCELLED: frozenset(),
}

# Tuples, which are made once: this is asked at the end of each run.
_STARTED_FROM_OUTSIDE: Final = (Event, Manual)
_REPEATED: Final = (Cron, Interval, Frequency)

EXECUTION_MOVES: Mapping[ExecutionState, frozenset[ExecutionState]] = {
    ExecutionState.PENDING: frozenset(
        {ExecutionState.QUEUED, ExecutionState.RUNNING, ExecutionState.CANCELLED, ExecutionState.SKIPPED}
    ),
    ExecutionState.QUEUED: frozenset(
        {ExecutionState.PENDING, ExecutionState.RUNNING, ExecutionState.CANCELLED, ExecutionState.SKIPPED}
    ),
    ExecutionState.RUNNING: frozenset(
        {
            ExecutionState.PENDING,
            ExecutionState.QUEUED,
            ExecutionState.COMPLETED,
            ExecutionState.FAILED,
            ExecutionState.CANCELLED,
        }
    ),
    ExecutionState.COMPLETED: frozenset(),
    ExecutionState.FAILED: frozenset(),
    ExecutionState.CANCELLED: frozenset(),
    ExecutionState.SKIPPED: frozenset({ExecutionState.QUEUED}),  # its parent was retried and succeeded
}


def can(current: JobState, wanted: JobState) -> bool:
    return wanted in MOVES[current]


def move(current: JobState, wanted: JobState, hint: str = "") -> JobState:
    """`wanted`, or MoveRefused naming both states; `hint` says what to do instead."""
    if not can(current, wanted):
        raise MoveRefused(current, wanted, hint)
    return wanted


def resting_state(
    *,
    job: Job,
    open_running: int,
    open_waiting_manual: bool,
    last_status: str | None,
    open_waiting: bool = False,
) -> JobState:
    """The state that follows from the facts, after a plan, a claim, a settlement or a change of the job.

    `open_waiting_manual`: a forced run waits to start. `open_waiting`: any execution is queued or pending.
    """
    if job.state is JobState.CANCELLED:
        return JobState.CANCELLED
    if open_running > 0:
        return JobState.RUNNING
    if open_waiting_manual:
        return JobState.PENDING
    if job.paused:
        return JobState.PAUSED
    if open_waiting or job.next_run_at is not None or _may_still_start(job):
        return JobState.SCHEDULED
    return JobState.FAILED if last_status == ExecutionState.FAILED else JobState.COMPLETED


def _may_still_start(job: Job) -> bool:
    schedule = job.timing.schedule
    triggered = job.trigger.webhook or job.trigger.channel or job.on_success_of
    if triggered or isinstance(schedule, _STARTED_FROM_OUTSIDE):
        return True
    # Disabling takes the next time away, enabling gives it back.
    return not job.enabled and isinstance(schedule, _REPEATED)
