"""Why a job runs when it does, or why it does not: one sentence for whoever wonders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from noonday.domain.events import WAIT_WORDS
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job, JobState
from noonday.domain.plans import runs_left
from noonday.domain.schedule import Event, Manual

__all__ = ["Why", "drift", "why"]

_OFTEN_ENOUGH: Final = 5  # days with runs on each side, before a change of pace means anything
_LATELY: Final = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The sentence may go on with a moment."""

    words: str
    at: datetime | None = None
    trouble: bool = False  # something keeps it from running


def why(job: Job, open_runs: Sequence[Execution], next_at: datetime | None, now: datetime) -> Why:
    """`open_runs` are those that run or wait; `next_at` is when the schedule fires next."""
    return _stopped(job) or _busy(open_runs, now) or _coming(job, next_at)


def _stopped(job: Job) -> Why | None:
    if job.state is JobState.CANCELLED:
        return Why(words="It was cancelled for good: nothing starts it again.", trouble=True)
    if job.paused and job.paused_until is not None:
        return Why(words="It is paused, and goes on by itself", at=job.paused_until, trouble=True)
    if job.paused:
        return Why(words="It is paused until somebody resumes it.", trouble=True)
    if not job.enabled:
        return Why(words="It is switched off: it runs only when somebody asks for it.", trouble=True)
    return None


def _busy(open_runs: Sequence[Execution], now: datetime) -> Why | None:
    running = [run for run in open_runs if run.state is ExecutionState.RUNNING]
    if running:
        since = min(run.started_at or run.claimed_at or now for run in running)
        words = "It is running, since" if len(running) == 1 else f"{len(running)} runs of it go on, since"
        return Why(words=words, at=since)
    for run in open_runs:
        if run.wait_reason is not None:
            words = f"A run {WAIT_WORDS[run.wait_reason]}"
            words += f" ({run.detail})" if run.detail else ""
            return Why(words=words if run.available_at else f"{words}.", at=run.available_at, trouble=True)
    due = [run for run in open_runs if run.available_at is not None and run.available_at <= now]
    if due:
        words = "A run is due, and no worker has taken it yet. It was due"
        return Why(words=words, at=due[0].available_at, trouble=True)
    return None


def _coming(job: Job, next_at: datetime | None) -> Why:
    if next_at is not None:
        return Why(words="It runs next", at=next_at)
    schedule = job.timing.schedule
    if isinstance(schedule, Event):
        return Why(words="It runs whenever its webhook or channel is triggered.")
    if job.on_success_of:
        return Why(words="It runs after the jobs that it follows have succeeded.")
    if isinstance(schedule, Manual):
        return Why(words="It runs only when somebody asks for it.")
    if runs_left(job) == 0:
        return Why(words=f"It has had all of its runs, which were {job.timing.max_runs}.")
    if job.timing.end_at is not None:
        return Why(words="Its schedule ended", at=job.timing.end_at)
    return Why(words="Its schedule has no further time.")


def drift(days: Sequence[timedelta | None]) -> float | None:
    """How many times as long its runs take lately, by their average of each day; None if that says little."""
    lately = [span for span in days[-_LATELY:] if span is not None]
    before = [span for span in days[:-_LATELY] if span is not None]
    if len(lately) < 2 or len(before) < _OFTEN_ENOUGH:
        return None
    usual = sum(before, timedelta()) / len(before)
    return sum(lately, timedelta()) / len(lately) / usual if usual else None
