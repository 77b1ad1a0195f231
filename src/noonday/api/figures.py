"""Statistics, times to come and the spread of the load on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import Field

from noonday.api.answers import Shape
from noonday.api.schedules import instant_text
from noonday.api.schemas import execution_json
from noonday.api.shapes import ExecutionShape
from noonday.control.forecast import Coming, Expected, Forecast
from noonday.control.statistics import (
    Counts,
    Day,
    Durations,
    JobStatistics,
    OverallStatistics,
)
from noonday.domain.explain import explain
from noonday.domain.job import JobState

__all__ = [
    "ForecastShape",
    "JobStatsShape",
    "OverallStatsShape",
    "UpcomingShape",
    "forecast_json",
    "job_stats_json",
    "millis",
    "overall_json",
    "upcoming_json",
]

Json = dict[str, Any]


class CountsShape(Shape):
    total: int = Field(description="runs that ended or are going on")
    completed: int
    failed: int
    cancelled: int
    skipped: int = Field(description="due times that did not run")
    running: int
    waiting: int


class DurationsShape(Shape):
    """Milliseconds that completed runs took."""

    average: int
    p50: int
    p95: int
    p99: int
    max: int


class DayShape(CountsShape):
    """What was due on a day in UTC."""

    day: str
    success_rate: float | None
    average_duration_ms: int | None


class StatsShape(Shape):
    days: int | None
    since: datetime | None
    until: datetime
    partial: bool = Field(description="there were too many executions: only the newest are counted")
    executions: CountsShape
    success_rate: float | None = Field(description="0 to 1, of runs that completed or failed")
    duration_ms: DurationsShape | None
    by_day: list[DayShape]
    last_execution: ExecutionShape | None = Field(description="the newest that has started, whenever it did")
    next_run_at: datetime | None


class JobStatsShape(StatsShape):
    job_id: str
    job_name: str


class OverallStatsShape(StatsShape):
    jobs: dict[str, int] = Field(description="how many jobs are in each state")


class UpcomingShape(Shape):
    """When a job will fire, jitter aside; nothing while it is paused, disabled or cancelled."""

    job_id: str
    job_name: str
    status: JobState
    schedule_enabled: bool
    timezone: str
    schedule_words: str
    next_runs: list[datetime]
    next_runs_local: list[str]
    more: bool


class ExpectedShape(Shape):
    job_id: str
    job_name: str
    priority: int
    at: datetime
    expected_duration_ms: int | None = Field(description="what completed runs of it took on average")
    expected_end_at: datetime | None


class ForecastShape(Shape):
    since: datetime = Field(alias="from")
    until: datetime = Field(alias="to")
    runs: list[ExpectedShape]
    more: bool


def job_stats_json(found: JobStatistics) -> Json:
    return {"job_id": found.job.id, "job_name": found.job.name, **_stats(found)}


def overall_json(found: OverallStatistics) -> Json:
    return {"jobs": {state.value: found.jobs.get(state, 0) for state in JobState}, **_stats(found)}


def upcoming_json(coming: Coming) -> Json:
    job = coming.job
    zone = ZoneInfo(job.timing.timezone)
    return {
        "job_id": job.id,
        "job_name": job.name,
        "status": job.state.value,
        "schedule_enabled": job.enabled,
        "timezone": job.timing.timezone,
        "schedule_words": explain(job.timing, job.id),
        "next_runs": [instant_text(at) for at in coming.times],
        "next_runs_local": [at.astimezone(zone).isoformat() for at in coming.times],
        "more": coming.more,
    }


def forecast_json(found: Forecast) -> Json:
    return {
        "from": instant_text(found.since),
        "to": instant_text(found.until),
        "runs": [_expected(run) for run in found.runs],
        "more": found.more,
    }


def _expected(run: Expected) -> Json:
    return {
        "job_id": run.job.id,
        "job_name": run.job.name,
        "priority": run.job.lane.value,
        "at": instant_text(run.at),
        "expected_duration_ms": millis(run.took),
        "expected_end_at": instant_text(run.ends_at),
    }


def _stats(found: JobStatistics | OverallStatistics) -> Json:
    period = found.period
    return {
        "days": period.days,
        "since": instant_text(period.since),
        "until": instant_text(period.until),
        "partial": found.partial,
        "executions": _counts(found.counts),
        "success_rate": _rate(found.counts),
        "duration_ms": _durations(found.durations),
        "by_day": _by_day(found.by_day),
        "last_execution": None if found.last is None else execution_json(found.last),
        "next_run_at": instant_text(found.next_run_at),
    }


def _by_day(days: Sequence[Day]) -> list[Json]:
    return [
        {
            "day": one.day.isoformat(),
            **_counts(one.counts),
            "success_rate": _rate(one.counts),
            "average_duration_ms": millis(one.average),
        }
        for one in days
    ]


def _counts(counts: Counts) -> Json:
    names = ("total", "completed", "failed", "cancelled", "skipped", "running", "waiting")
    return {name: getattr(counts, name) for name in names}


def _rate(counts: Counts) -> float | None:
    return None if counts.success_rate is None else round(counts.success_rate, 6)


def _durations(found: Durations | None) -> Json | None:
    if found is None:
        return None
    return {name: millis(getattr(found, name)) for name in ("average", "p50", "p95", "p99", "max")}


def millis(span: timedelta | None) -> int | None:
    return None if span is None else round(span.total_seconds() * 1000)
