"""Test data with sensible defaults: name only what the test is about."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState
from noonday.domain.job import Job, JobId, JobState
from noonday.domain.schedule import Cron, Schedule, Timing
from noonday.domain.target import PythonTarget

_serial = count(1)


def at(text: str) -> datetime:
    """An instant in UTC from ISO text: `at("2027-03-28T01:30:00Z")`; without an offset it is taken as UTC."""
    instant = datetime.fromisoformat(text)
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    return instant.astimezone(UTC)


NOON = at("2027-01-01T12:00:00Z")
LEASE = timedelta(seconds=30)
TIMEOUT = timedelta(hours=1)


def an_id() -> str:
    """A fresh UUID that sorts after the ones before it."""
    return str(UUID(int=(0x7 << 76) | (0x2 << 62) | next(_serial)))


def a_timing(schedule: Schedule | None = None, **changes: Any) -> Timing:
    """Every minute in UTC, anchored at NOON, unless told otherwise."""
    made = Timing(schedule=schedule or Cron(expression="* * * * *"), anchor_at=NOON)
    return replace(made, **changes)


def a_job(**changes: Any) -> Job:
    """A scheduled job with a fresh id and name; `schedule=` is a short way to `timing=a_timing(schedule)`.

    `next_run_at` is None (not yet armed) unless given.
    """
    if "schedule" in changes:
        changes["timing"] = a_timing(changes.pop("schedule"))
    made_at = changes.get("created_at", NOON)
    job_id = JobId(an_id())
    made = Job(
        id=job_id,
        name=f"job-{next(_serial)}",
        timing=a_timing(),
        target=PythonTarget(task="noop"),
        state=JobState.SCHEDULED,
        created_at=made_at,
        updated_at=made_at,
    )
    return replace(made, **changes)


def an_execution(**changes: Any) -> Execution:
    """A queued execution of cause schedule, due and available at NOON; `job=` gives its job_id and lane."""
    job: Job | None = changes.pop("job", None)
    if job is not None:
        changes = {"job_id": job.id, "lane": job.lane} | changes
    due: datetime = changes.get("scheduled_for", NOON)
    made = Execution(
        id=ExecutionId(an_id()),
        job_id=JobId(an_id()),
        cause=Cause.SCHEDULE,
        scheduled_for=due,
        available_at=due,
        state=ExecutionState.QUEUED,
        number=1,
        created_at=due,
    )
    return replace(made, **changes)


def a_running_execution(**changes: Any) -> Execution:
    """Claimed and started when it was due: attempt 1, with a lease and a token."""
    due: datetime = changes.get("scheduled_for", NOON)
    running: dict[str, Any] = {
        "state": ExecutionState.RUNNING,
        "attempt": 1,
        "lease_token": "token",
        "lease_expires_at": due + LEASE,
        "deadline_at": due + TIMEOUT,
        "claimed_at": due,
        "started_at": due,
        "instance_id": "instance-1",
    }
    return an_execution(**(running | changes))
