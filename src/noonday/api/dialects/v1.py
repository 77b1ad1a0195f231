"""The first version's words: its job bodies, its figures, and on each answer where its successor is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote

from pydantic import Field
from starlette.datastructures import MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from noonday.api import answers
from noonday.api.answers import Shape
from noonday.api.figures import millis
from noonday.api.schedules import instant_text
from noonday.api.schemas import JobBody, JobDefaults, job_json
from noonday.api.shapes import ExecutionShape, JobShape, Started
from noonday.control.statistics import JobStatistics, OverallStatistics
from noonday.domain.execution import Execution
from noonday.domain.job import Job, JobState
from noonday.domain.schedule import Cron, Interval

__all__ = [
    "Route",
    "V1ExecutionPage",
    "V1JobPage",
    "V1JobShape",
    "V1Metrics",
    "V1Retried",
    "V1Stats",
    "changing",
    "creating",
    "defaults_of",
    "job_v1",
    "metrics_v1",
    "retried_v1",
    "stats_v1",
]

Json = dict[str, Any]
_DEPRECATED: Final = "@1798761600"  # RFC 9745: since 2027-01-01
_SUNSET: Final = "Mon, 01 Jan 2029 00:00:00 GMT"  # RFC 8594: not before this
_WHEN: Final = (
    "schedule_type",
    "interval_minutes",
    "cron_expression",
    "schedule_time",
    "frequency",
    "run_at",
    "trigger_webhook",
    "trigger_channel",
)


class Route(answers.Route):
    """Says on every answer, a refusal too, that this version is outdated and which address replaces it."""

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        successor = quote(scope["path"].replace("/api/v1/", "/api/v2/", 1))

        async def telling(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Deprecation"] = _DEPRECATED
                headers["Sunset"] = _SUNSET
                headers.append("Link", f'<{successor}>; rel="successor-version"')
            await send(message)

        await super().handle(scope, receive, telling)


class V1JobShape(JobShape):
    schedule_time: str | None = Field(description="the cron text under its former name")


class V1JobPage(Shape):
    jobs: list[V1JobShape]
    total: int
    limit: int
    offset: int


class V1ExecutionPage(Shape):
    executions: list[ExecutionShape]
    total: int
    limit: int
    offset: int


class V1Retried(V1JobShape, Started):
    """The job, and the execution that was started for it."""


class V1Stats(Shape):
    total_executions: int
    successful_runs: int
    failed_runs: int
    average_duration_ms: float
    last_execution_at: datetime | None
    next_scheduled_at: datetime | None
    success_rate: float = Field(description="0 to 1; 0 if nothing has run")


class V1Runs(Shape):
    total: int
    average_duration_ms: float
    success_rate: float


class V1Metrics(Shape):
    jobs: dict[str, int]
    executions: V1Runs
    last_check_at: datetime | None
    last_metrics_update: datetime
    stale_locks_cleared: int


def defaults_of(defaults: JobDefaults) -> JobDefaults:
    """A job that comes by version 1 is of version 1, unless it says otherwise."""
    return replace(defaults, scheduler_version=1)


def creating(body: JobBody) -> JobBody:
    """A new job as version 1 meant it: without a schedule none can be switched off, and it runs at once."""
    unneeded = set() if _given(body, "interval_minutes") else {"interval_type"}
    if body.schedule_enabled is False and not any(_given(body, name) for name in _WHEN):
        unneeded.add("schedule_enabled")
    return _without(body, unneeded)


def changing(body: JobBody, job: Job) -> JobBody:
    """A change as version 1 meant it. What was read is often sent back whole, with one field changed.

    So the kind of schedule that the job has already decides nothing; a unit without an interval says nothing;
    and of the two names of a cron text the one that was changed counts.
    """
    current = job.timing.schedule
    unneeded = {"schedule_type"} if body.schedule_type == current.type else set()
    interval_goes = "interval_minutes" in body.model_fields_set or not isinstance(current, Interval)
    if interval_goes and not _given(body, "interval_minutes"):
        unneeded |= {"interval_type", "after_completion"}
    old = current.expression if isinstance(current, Cron) else None
    if _given(body, "schedule_time") and body.cron_expression == old:
        unneeded.add("cron_expression")
    return _without(body, unneeded)


def job_v1(job: Job, now: datetime) -> Json:
    shown = job_json(job, now)
    return {**shown, "schedule_time": shown["cron_expression"]}


def retried_v1(job: Job, run: Execution, now: datetime) -> Json:
    started = {"message": "the job will be tried again now", "job_id": job.id, "execution_id": run.id}
    return {**job_v1(job, now), **started}


def stats_v1(found: JobStatistics) -> Json:
    counts = found.counts
    return {
        "total_executions": counts.total,
        "successful_runs": counts.completed,
        "failed_runs": counts.failed,
        "average_duration_ms": _average(found),
        "last_execution_at": instant_text(found.last.started_at) if found.last else None,
        "next_scheduled_at": instant_text(found.next_run_at),
        "success_rate": _rate(found),
    }


def metrics_v1(found: OverallStatistics, last_check_at: datetime | None, locks_cleared: int) -> Json:
    return {
        "jobs": {state.value: found.jobs.get(state, 0) for state in JobState},
        "executions": {
            "total": found.counts.total,
            "average_duration_ms": _average(found),
            "success_rate": _rate(found),
        },
        "last_check_at": instant_text(last_check_at),
        "last_metrics_update": instant_text(found.period.until),
        "stale_locks_cleared": locks_cleared,
    }


def _average(found: JobStatistics | OverallStatistics) -> int:
    return millis(found.durations.average) or 0 if found.durations else 0


def _rate(found: JobStatistics | OverallStatistics) -> float:
    return round(found.counts.success_rate or 0.0, 6)


def _given(body: JobBody, name: str) -> bool:
    return getattr(body, name) is not None


def _without(body: JobBody, names: set[str]) -> JobBody:
    kept: Mapping[str, Any] = {name: getattr(body, name) for name in body.model_fields_set - names}
    return JobBody.model_construct(_fields_set=set(kept), **kept)
