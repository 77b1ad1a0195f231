"""What the registry answers, in camelCase: jobs, their history and their figures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from pydantic.alias_generators import to_camel

from noonday.api.dialects.registry_shapes import CamelShape, RegisteredJob, RegistryExecution
from noonday.api.schedules import instant_text
from noonday.api.schemas import execution_json, job_json
from noonday.control.registry import Listed, Registered, RegisteredAll
from noonday.control.secrets import looks_secret, redacted
from noonday.control.statistics import JobStatistics
from noonday.domain.declaring import IN_METADATA, Kept
from noonday.domain.execution import Cause, Execution, ExecutionState
from noonday.domain.target import ServiceTarget
from noonday.store.pages import Page

__all__ = ["execution_view", "job_view", "pagination", "registered_all_view", "registered_view", "stats_view"]

# The contract with services knows three causes; `cause` says it all.
_TRIGGERED_BY: Final = {Cause.MANUAL: "manual", Cause.ADMIN: "admin", Cause.BACKFILL: "admin"}
_ENDED: Final = {
    ExecutionState.COMPLETED: True,
    ExecutionState.FAILED: False,
    ExecutionState.CANCELLED: False,
}


def job_view(listed: Listed, now: datetime) -> dict[str, Any]:
    job, target, runs = listed.job, listed.job.target, listed.runs
    shown = job_json(job, now)
    metadata = shown["metadata"]
    return _same(shown, RegisteredJob) | {
        "displayName": str(metadata.get("display_name") or job.name),
        "jobType": _text(metadata.get("job_type")),
        "critical": metadata.get("critical") is True,
        "metadata": {key: value for key, value in metadata.items() if key not in IN_METADATA.values()},
        "enabled": job.enabled,
        "paused": job.paused,
        "service": listed.service,
        "endpoint": target.endpoint if isinstance(target, ServiceTarget) else None,
        "totalRuns": runs.total,
        "successfulRuns": runs.successful,
        "failedRuns": runs.failed,
    }


def _same(shown: Mapping[str, Any], shape: type[CamelShape]) -> dict[str, Any]:
    """What both dialects call the same, but for underscores."""
    return {to_camel(name): shown[name] for name in shape.model_fields if name in shown}


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def registered_view(done: Registered, listed: Listed, now: datetime) -> dict[str, Any]:
    name = done.job.name
    if done.created:
        words = f"{name} was registered"
    elif done.left_alone:
        words = f"{name} was there already and is left as it is: JOB_REPLACE_EXISTING_INSTANCE is false"
    elif done.changed:
        words = f"{name} was brought up to date"
    else:
        words = f"{name} is registered; there was nothing to change"
    if done.kept:
        words += f"; kept as it is here: {', '.join(kept.field for kept in done.kept)}"
    return {"success": True, "message": words} | _what(done) | {"job": job_view(listed, now)}


def registered_all_view(service: str, done: RegisteredAll) -> dict[str, Any]:
    created = sum(one.created for one in done.jobs)
    changed = sum(bool(one.changed) for one in done.jobs)
    words = f"{len(done.jobs)} jobs of {service}: {created} new, {changed} changed"
    if done.disabled:
        words += f", and {len(done.disabled)} that it does not declare any more were disabled"
    return {
        "success": True,
        "message": words,
        "service": service,
        "jobs": [{"name": one.job.name} | _what(one) for one in done.jobs],
        "disabled": [job.name for job in done.disabled],
    }


def _what(done: Registered) -> dict[str, Any]:
    return {
        "created": done.created,
        "replaced": bool(done.changed),
        "changed": list(done.changed),
        "kept": [_kept(each) for each in done.kept],
    }


def _kept(kept: Kept) -> dict[str, Any]:
    secret = looks_secret(kept.field)
    values = {name: redacted(getattr(kept, name), secret=secret) for name in ("declared", "kept")}
    return {"field": kept.field, **values, "reason": kept.reason}


def pagination(page: Page[Any]) -> dict[str, Any]:
    more = page.offset + len(page.items) < page.total
    return page.bounds | {"hasMore": more}


def execution_view(execution: Execution, job_name: str) -> dict[str, Any]:
    shown = execution_json(execution)
    return _same(shown, RegistryExecution) | {
        "jobName": job_name,
        "triggeredBy": _TRIGGERED_BY.get(execution.cause, "scheduler"),
        "result": _job_result(execution, shown),
    }


def _job_result(execution: Execution, shown: Mapping[str, Any]) -> dict[str, Any] | None:
    """As the service gave it: the fields of the contract, and whatever it said beyond them."""
    success = _ENDED.get(execution.state)
    if success is None:
        return None
    beyond = shown["value"] if isinstance(shown["value"], Mapping) else {}
    counts = {to_camel(name): shown[name] or 0 for name in ("items_processed", "items_succeeded")}
    result = {**beyond, "success": success, **counts, "itemsFailed": shown["items_failed"] or 0}
    if execution.error:
        result["error"] = execution.error
    return result | {"metadata": shown["metadata"]}


def stats_view(found: JobStatistics) -> dict[str, Any]:
    counts, durations = found.counts, found.durations
    spans = {name: getattr(durations, name, None) for name in ("average", "p50", "p95", "p99")}
    return {
        "jobName": found.job.name,
        "days": found.period.days,
        "totalRuns": counts.total,
        "successfulRuns": counts.completed,
        "failedRuns": counts.failed,
        "cancelledRuns": counts.cancelled,
        "skippedRuns": counts.skipped,
        "successRate": counts.success_rate,
        **{f"{name}DurationMs": _millis(span) for name, span in spans.items()},
        "lastRunAt": instant_text(found.last.started_at) if found.last else None,
        "lastStatus": found.last.state.value if found.last else None,
        "nextRunAt": instant_text(found.next_run_at),
        "byDay": [
            {
                "date": day.day.isoformat(),
                "totalRuns": day.counts.total,
                "successfulRuns": day.counts.completed,
                "failedRuns": day.counts.failed,
                "averageDurationMs": _millis(day.average),
            }
            for day in found.by_day
        ],
    }


def _millis(span: timedelta | None) -> int | None:
    return None if span is None else round(span.total_seconds() * 1000)
