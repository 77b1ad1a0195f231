"""Jobs and executions on the wire and inside; what `api`, CLI and files share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from noonday.api.bodies import JobBody
from noonday.api.schedules import apply_timing, instant_text, number, timing_json, to_timing
from noonday.api.targets import apply_target, default_name, target_json, target_url
from noonday.control.outputs import Reading
from noonday.control.secrets import redacted, restored
from noonday.domain.events import SKIP_WORDS, WAIT_WORDS
from noonday.domain.execution import Attempt, Cause, Execution
from noonday.domain.explain import explain
from noonday.domain.job import (
    CatchUp,
    Job,
    JobId,
    Lane,
    MisfirePolicy,
    OnLost,
    Overlap,
    OverlapPolicy,
    Retention,
    RetryPolicy,
    Trigger,
)
from noonday.domain.occurrences import next_after, upcoming
from noonday.domain.outcome import Result
from noonday.domain.schedule import Timing

__all__ = [
    "JobBody",
    "JobDefaults",
    "apply_body",
    "attempt_json",
    "execution_json",
    "job_json",
    "output_json",
    "to_job",
]

NEXT_RUNS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDefaults:
    """What a new job has where its body is silent."""

    timeout: timedelta = timedelta(hours=1)
    misfire: MisfirePolicy = field(default_factory=MisfirePolicy)
    overlapping: OverlapPolicy = field(default_factory=OverlapPolicy)
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    scheduler_version: int = 2


DEFAULTS = JobDefaults()


def to_job(body: JobBody, id: JobId, now: datetime, defaults: JobDefaults = DEFAULTS) -> Job:
    target = apply_target(body, None)
    blank = Job(
        id=id,
        name=default_name(target, id),
        timing=to_timing(body, now),
        target=target,
        timeout=defaults.timeout,
        misfire=defaults.misfire,
        overlapping=defaults.overlapping,
        retry=defaults.retry,
        scheduler_version=defaults.scheduler_version,
        created_at=now,
        updated_at=now,
    )
    return _applied(body, blank, defaults)


def apply_body(body: JobBody, job: Job, now: datetime, defaults: JobDefaults = DEFAULTS) -> Job:
    """The job with the fields that the body names, the others left alone; null means the default."""
    timing, target = apply_timing(body, job.timing, now), apply_target(body, job.target)
    return _applied(body, replace(job, timing=timing, target=target), defaults)


def _applied(body: JobBody, job: Job, defaults: JobDefaults) -> Job:
    named = body.model_fields_set

    def pick(name: str, current: Any, default: Any) -> Any:
        if name not in named:
            return current
        value = getattr(body, name)
        return default if value is None else value

    def span(name: str, current: timedelta, default: timedelta) -> timedelta:
        found = pick(name, current, default)
        return found if isinstance(found, timedelta) else timedelta(seconds=found)

    def secretive(name: str, current: Mapping[str, Any]) -> Mapping[str, Any]:
        given = pick(name, current, {})
        made: Mapping[str, Any] = current if given is current else restored(given, current, name)
        return made

    misfire, overlaps, retry = job.misfire, job.overlapping, job.retry
    return replace(
        job,
        name=pick("name", job.name, job.name),
        description=pick("description", job.description, ""),
        tags=tuple(pick("tags", job.tags, ())),
        source_id=pick("source_id", job.source_id, None),
        config=secretive("config", job.config),
        metadata=secretive("metadata", job.metadata),
        lane=Lane(pick("priority", job.lane, Lane.NORMAL)),
        timeout=span("timeout_seconds", job.timeout, defaults.timeout),
        misfire=MisfirePolicy(
            grace=span("misfire_grace_seconds", misfire.grace, defaults.misfire.grace),
            coalesce=pick("coalesce", misfire.coalesce, defaults.misfire.coalesce),
            catch_up=CatchUp(pick("catch_up", misfire.catch_up, defaults.misfire.catch_up)),
        ),
        overlapping=OverlapPolicy(
            max_instances=pick("max_instances", overlaps.max_instances, defaults.overlapping.max_instances),
            overlap=Overlap(pick("overlap", overlaps.overlap, defaults.overlapping.overlap)),
        ),
        retry=RetryPolicy(
            max_retries=pick("max_retries", retry.max_retries, defaults.retry.max_retries),
            backoff=span("retry_backoff_seconds", retry.backoff, defaults.retry.backoff),
            jitter=pick("retry_jitter", retry.jitter, defaults.retry.jitter),
            on_lost=OnLost(pick("on_lost", retry.on_lost, defaults.retry.on_lost)),
        ),
        trigger=Trigger(
            webhook=pick("trigger_webhook", job.trigger.webhook, None),
            channel=pick("trigger_channel", job.trigger.channel, None),
        ),
        retention=Retention(
            runs=pick("retention_runs", job.retention.runs, None),
            days=pick("retention_days", job.retention.days, None),
        ),
        depends_on=tuple(pick("depends_on", job.depends_on, ())),
        on_success_of=tuple(pick("on_success_of", job.on_success_of, ())),
        scheduler_version=pick("scheduler_version", job.scheduler_version, defaults.scheduler_version),
        enabled=pick("schedule_enabled", job.enabled, True),
    )


def job_json(job: Job, now: datetime | None = None) -> dict[str, Any]:
    """A job as everybody may see it: each field of the body, then what the scheduler keeps of it."""
    runs = _next_runs(job, now)
    return {
        "id": job.id,
        "name": job.name,
        "description": job.description,
        "tags": list(job.tags),
        "source_id": job.source_id,
        "url": redacted(target_url(job.target)),
        "target": target_json(job.target),
        **timing_json(job.timing),
        "trigger_webhook": job.trigger.webhook,
        "trigger_channel": job.trigger.channel,
        "config": redacted(job.config),
        "metadata": redacted(job.metadata),
        "priority": job.lane.value,
        "timeout_seconds": number(job.timeout),
        "max_retries": job.retry.max_retries,
        "retry_backoff_seconds": number(job.retry.backoff),
        "retry_jitter": job.retry.jitter,
        "on_lost": job.retry.on_lost.value,
        "misfire_grace_seconds": number(job.misfire.grace),
        "coalesce": job.misfire.coalesce,
        "catch_up": job.misfire.catch_up.value,
        "max_instances": job.overlapping.max_instances,
        "overlap": job.overlapping.overlap.value,
        "depends_on": list(job.depends_on),
        "on_success_of": list(job.on_success_of),
        "schedule_enabled": job.enabled,
        "retention_runs": job.retention.runs,
        "retention_days": job.retention.days,
        "scheduler_version": job.scheduler_version,
        "status": job.state.value,
        "is_paused": job.paused,
        "paused_until": instant_text(job.paused_until),
        "next_run_at": instant_text(runs[0]) if runs else None,
        "next_runs": [instant_text(run) for run in runs],
        "schedule_words": _in_words(job.timing, job.id),
        "last_run_at": instant_text(job.last_run_at),
        "last_status": job.last_status,
        "fire_count": job.fire_count,
        "current_retry_count": job.retry_count,
        "created_at": instant_text(job.created_at),
        "updated_at": instant_text(job.updated_at),
        "revision": job.revision,
    }


def _next_runs(job: Job, now: datetime | None) -> list[datetime]:
    """When it will fire next. The cursor alone does not tell: what lies before it may be planned already."""
    cursor = job.next_run_at
    if cursor is None or not job.armed:
        return []
    now = now and max(now, job.skipped_through or now)
    if now is not None and cursor > now:
        first = next_after(job.timing, job.id, now)
        if first is not None and first < cursor:
            return upcoming(job.timing, job.id, now, NEXT_RUNS, max(job.fire_count - 1, 0))
    return [cursor, *_later(job.timing, job.id, cursor, job.fire_count + 1)]


@lru_cache(maxsize=4096)
def _later(timing: Timing, key: str, cursor: datetime, fired: int) -> tuple[datetime, ...]:
    return tuple(upcoming(timing, key, cursor, NEXT_RUNS - 1, fired))


@lru_cache(maxsize=4096)
def _in_words(timing: Timing, key: str) -> str:
    return explain(timing, key)


_TRIGGERED_BY = {Cause.SCHEDULE: "scheduler"}


def execution_json(execution: Execution) -> dict[str, Any]:
    """An execution under the names of the former API, then under our own."""
    result = execution.result
    return {
        "id": execution.id,
        "job_id": execution.job_id,
        "execution_number": execution.number,
        "status": execution.state.value,
        "scheduled_for": instant_text(execution.scheduled_for),
        "started_at": instant_text(execution.started_at),
        "completed_at": instant_text(execution.completed_at),
        "duration_ms": _millis(execution.started_at, execution.completed_at),
        "error_message": execution.error,
        "stack_trace": execution.stack,
        "retry_attempt": execution.failures,
        **_result_json(result),
        "cause": execution.cause.value,
        "triggered_by": _TRIGGERED_BY.get(execution.cause, execution.cause.value),
        "triggered_by_user": execution.triggered_by,
        "config": redacted(execution.config),
        "attempt": execution.attempt,
        "losses": execution.losses,
        "available_at": instant_text(execution.available_at),
        "lateness_ms": _lateness(execution),
        "covers_from": instant_text(execution.covers_from),
        "through_at": instant_text(execution.through_at),
        "skipped_count": execution.skipped_count,
        "skip_reason": execution.skip_reason and execution.skip_reason.value,
        "wait_reason": execution.wait_reason and execution.wait_reason.value,
        "reason": _reason(execution),
        "detail": execution.detail,
        "progress": execution.progress,
        "progress_message": execution.progress_message,
        "remote": execution.remote,
        "cancel_requested_at": instant_text(execution.cancel_requested_at),
        "cancel_requested_by": execution.cancel_requested_by,
        "instance_id": execution.instance_id,
        "priority": execution.lane.value,
        "trace_id": execution.trace_id,
        "created_at": instant_text(execution.created_at),
    }


def attempt_json(attempt: Attempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "outcome": attempt.outcome,
        "started_at": instant_text(attempt.started_at),
        "completed_at": instant_text(attempt.completed_at),
        "duration_ms": _millis(attempt.started_at, attempt.completed_at),
        "instance_id": attempt.instance_id,
        "error_message": attempt.error,
        "stack_trace": attempt.stack,
        **_result_json(attempt.result),
    }


def output_json(reading: Reading) -> dict[str, Any]:
    return {
        "execution_id": reading.execution.id,
        "attempt": reading.attempt,
        "newest_attempt": reading.newest,
        "pieces": [
            {
                "place": one.piece.place,
                "line": one.piece.line,
                "at": instant_text(one.at),
                "text": one.piece.text,
            }
            for one in reading.written
        ],
        "next": reading.next,
        "more": reading.more,
        "ended": reading.ended,
    }


def _result_json(result: Result) -> dict[str, Any]:
    shown: Mapping[str, Any] = {f.name: getattr(result, f.name) for f in fields(result) if f.name != "usage"}
    return {
        "items_crawled": result.items_processed,
        "items_indexed": result.items_succeeded,
        **{name: redacted(value) for name, value in shown.items()},
        "cpu_time_ms": result.usage.cpu_time_ms,
        "memory_peak_mb": result.usage.memory_peak_mb,
    }


def _reason(execution: Execution) -> str | None:
    """Why it was skipped or waits, in words."""
    if execution.skip_reason is not None:
        return SKIP_WORDS[execution.skip_reason]
    return WAIT_WORDS[execution.wait_reason] if execution.wait_reason is not None else None


def _lateness(execution: Execution) -> int | None:
    """Of the first attempt; a later one is late on purpose, and its first start is in the attempts."""
    return _millis(execution.scheduled_for, execution.started_at) if execution.attempt == 1 else None


def _millis(start: datetime | None, end: datetime | None) -> int | None:
    if start is None or end is None:
        return None
    return max(0, round((end - start).total_seconds() * 1000))
