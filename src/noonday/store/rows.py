"""How a job looks in its row: what people define, and what the scheduler keeps."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from noonday.domain.job import (
    CatchUp,
    Job,
    JobId,
    JobState,
    Lane,
    MisfirePolicy,
    OnLost,
    Overlap,
    OverlapPolicy,
    Retention,
    RetryPolicy,
    Trigger,
)
from noonday.store.reading import Row, RowError, a_list, an_object, instant
from noonday.store.target_rows import read_target, target_values
from noonday.store.timing_rows import read_timing, timing_values


def job_values(job: Job) -> dict[str, Any]:
    """All columns that the code writes; a row so written is known to be good."""
    return {
        "id": job.id,
        "name": job.name,
        "description": job.description,
        "tags": list(job.tags),
        "source_id": job.source_id,
        **target_values(job.target),
        **timing_values(job.timing),
        **_policy_values(job),
        "trigger_webhook": job.trigger.webhook,
        "trigger_channel": job.trigger.channel,
        "depends_on": list(job.depends_on),
        "on_success_of": list(job.on_success_of),
        "scheduler_version": job.scheduler_version,
        "config": dict(job.config),
        "metadata": dict(job.metadata),
        "created_at": job.created_at,
        **_kept_values(job),
    }


def _policy_values(job: Job) -> dict[str, Any]:
    return {
        "priority": job.lane.value,
        "timeout_seconds": job.timeout.total_seconds(),
        "misfire_grace_seconds": job.misfire.grace.total_seconds(),
        "coalesce": job.misfire.coalesce,
        "catch_up": job.misfire.catch_up.value,
        "max_instances": job.overlapping.max_instances,
        "overlap": job.overlapping.overlap.value,
        "max_retries": job.retry.max_retries,
        "retry_backoff_seconds": job.retry.backoff.total_seconds(),
        "retry_jitter": job.retry.jitter,
        "on_lost": job.retry.on_lost.value,
        "retention_runs": job.retention.runs,
        "retention_days": job.retention.days,
    }


def _kept_values(job: Job) -> dict[str, Any]:
    return {
        "status": job.state.value,
        "schedule_enabled": job.enabled,
        "is_paused": job.paused,
        "paused_until": job.paused_until if job.paused else None,
        "skipped_through": job.skipped_through,
        # A cancelled job is never due, whatever its cursor says.
        "next_run_at": None if job.state is JobState.CANCELLED else job.next_run_at,
        "last_run_at": job.last_run_at,
        "last_status": job.last_status,
        "fire_count": job.fire_count,
        "current_retry_count": job.retry_count,
        "updated_at": job.updated_at,
        "revision": job.revision,
        "dirty": False,
        "error": None,
    }


def job_from_row(row: Row) -> Job:
    """Raises RowError for a row that somebody made unreadable."""
    return Job(**definition_from_row(row), **kept_from_row(row))


def definition_from_row(row: Row) -> dict[str, Any]:
    """What people define of a job, as arguments of Job; the same as long as the revision is."""
    try:
        return _definition(row)
    except RowError:
        raise
    # Whatever a hand-written value may cause while it is read; ZoneInfo alone knows five ways.
    except Exception as exc:
        raise RowError(f"{type(exc).__name__}: {exc}") from exc


_STATES = {state.value: state for state in JobState}


def kept_from_row(row: Row) -> dict[str, Any]:
    """What the scheduler itself keeps of a job, as arguments of Job."""
    state = _STATES.get(row["status"])
    if state is None:
        raise RowError(f"status: {row['status']!r} is not a state")
    return {
        "state": state,
        "enabled": row["schedule_enabled"],
        "paused": row["is_paused"],
        "paused_until": instant(row, "paused_until"),
        "skipped_through": instant(row, "skipped_through"),
        "next_run_at": instant(row, "next_run_at"),
        "last_run_at": instant(row, "last_run_at"),
        "last_status": row["last_status"],
        "fire_count": row["fire_count"],
        "retry_count": row["current_retry_count"],
        "updated_at": instant(row, "updated_at"),
        "revision": row["revision"],
    }


def _definition(row: Row) -> dict[str, Any]:
    return {
        "id": JobId(row["id"]),
        "name": row["name"] or row["id"],
        "timing": read_timing(row),
        "target": read_target(row),
        "description": row["description"],
        "tags": tuple(str(tag) for tag in a_list(row, "tags")),
        "source_id": row["source_id"],
        "config": an_object(row, "config"),
        "metadata": an_object(row, "metadata"),
        "lane": Lane(row["priority"]),
        "timeout": timedelta(seconds=row["timeout_seconds"]),
        **_policies(row),
        "trigger": Trigger(webhook=row["trigger_webhook"], channel=row["trigger_channel"]),
        "depends_on": tuple(JobId(str(i)) for i in a_list(row, "depends_on")),
        "on_success_of": tuple(JobId(str(i)) for i in a_list(row, "on_success_of")),
        "scheduler_version": row["scheduler_version"],
        "created_at": instant(row, "created_at"),
    }


def _policies(row: Row) -> dict[str, Any]:
    return {
        "misfire": MisfirePolicy(
            grace=timedelta(seconds=row["misfire_grace_seconds"]),
            coalesce=row["coalesce"],
            catch_up=CatchUp(row["catch_up"]),
        ),
        "overlapping": OverlapPolicy(max_instances=row["max_instances"], overlap=Overlap(row["overlap"])),
        "retry": RetryPolicy(
            max_retries=row["max_retries"],
            backoff=timedelta(seconds=row["retry_backoff_seconds"]),
            jitter=row["retry_jitter"],
            on_lost=OnLost(row["on_lost"]),
        ),
        "retention": Retention(runs=row["retention_runs"], days=row["retention_days"]),
    }
