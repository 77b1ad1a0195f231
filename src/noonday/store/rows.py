"""How a job looks in its row: what people define, and what the scheduler keeps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta
from operator import attrgetter, is_, itemgetter
from typing import Any, Final

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
from noonday.store.jsontext import Unreadable
from noonday.store.reading import Row, RowError, a_list, an_object, instant
from noonday.store.target_rows import read_target, target_values
from noonday.store.timing_rows import read_timing, timing_values


def job_values(job: Job) -> dict[str, Any]:
    """All columns that the code writes; a row so written is known to be good."""
    return _own_values(job) | _alike_values(job)


def job_rows(made: Iterable[Job]) -> list[dict[str, Any]]:
    """`job_values` of many: jobs that were made together have much of the one before them."""
    rows: list[dict[str, Any]] = []
    before: tuple[Any, ...] = ()
    alike: dict[str, Any] = {}
    for job in made:
        fields = _alike_in(job)
        if not rows or not all(map(is_, fields, before)):
            before, alike = fields, _alike_values(job)
        rows.append(_own_values(job) | alike)
    return rows


def _own_values(job: Job) -> dict[str, Any]:
    return {
        "id": job.id,
        "name": job.name,
        "source_id": job.source_id,
        **target_values(job.target),
        **timing_values(job.timing),
        "config": dict(job.config),
        "metadata": dict(job.metadata),
        "created_at": job.created_at,
        **_kept_values(job),
    }


_alike_in = attrgetter(
    "description", "tags", "lane", "timeout", "misfire", "overlapping", "retry", "trigger", "retention",
    "depends_on", "on_success_of", "scheduler_version",
)  # fmt: skip


def _alike_values(job: Job) -> dict[str, Any]:
    """Of the fields that `_alike_in` takes."""
    return {
        "description": job.description,
        "tags": list(job.tags),
        "trigger_webhook": job.trigger.webhook,
        "trigger_channel": job.trigger.channel,
        "depends_on": list(job.depends_on),
        "on_success_of": list(job.on_success_of),
        "scheduler_version": job.scheduler_version,
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


# What the scheduler itself keeps of a job: its columns, and beside them the fields of Job.
KEPT_FIELDS: Final = {
    "id": "id",
    "revision": "revision",
    "updated_at": "updated_at",
    "status": "state",
    "schedule_enabled": "enabled",
    "is_paused": "paused",
    "paused_until": "paused_until",
    "skipped_through": "skipped_through",
    "next_run_at": "next_run_at",
    "last_run_at": "last_run_at",
    "last_status": "last_status",
    "fire_count": "fire_count",
    "current_retry_count": "retry_count",
}
KEPT_NAMES: Final = tuple(KEPT_FIELDS)
_kept_in = itemgetter(*KEPT_NAMES)
_STATUS: Final = KEPT_NAMES.index("status")
_STATES: Final = {state.value: state for state in JobState}


def kept_from_row(row: Row) -> dict[str, Any]:
    """What the scheduler keeps, as arguments of Job; the id is not among them."""
    values = _kept_in(row)
    made = dict(zip(KEPT_FIELDS.values(), values, strict=True)) | {"state": state_of(values)}
    del made["id"]
    return made


def state_of(kept: Sequence[Any]) -> JobState:
    """Of a row that begins with KEPT_NAMES; RowError if it or anything beside it cannot be read."""
    state = _STATES.get(kept[_STATUS])
    if state is None:
        raise RowError(f"status: {kept[_STATUS]!r} is not a state")
    if Unreadable in map(type, kept):
        wrong = [pair for pair in zip(KEPT_FIELDS, kept, strict=False) if type(pair[1]) is Unreadable]
        raise RowError("; ".join(f"{name}: {value}" for name, value in wrong))
    return state


def _definition(row: Row) -> dict[str, Any]:
    own = {
        "id": JobId(row["id"]),
        "name": row["name"] or row["id"],
        "timing": read_timing(row),
        "target": read_target(row),
        "description": row["description"],
        "tags": _texts(row, "tags"),
        "source_id": row["source_id"],
        "config": an_object(row, "config"),
        "metadata": an_object(row, "metadata"),
        "created_at": instant(row, "created_at"),
    }
    return own | dict(zip(ALIKE, alike_from_row(row), strict=True))


# What most jobs have alike.
ALIKE: Final = (
    "lane", "timeout", "trigger", "depends_on", "on_success_of", "scheduler_version",
    "misfire", "overlapping", "retry", "retention",
)  # fmt: skip


def alike_from_row(row: Row) -> tuple[Any, ...]:
    """The fields ALIKE."""
    return (
        Lane(row["priority"]),
        timedelta(seconds=row["timeout_seconds"]),
        Trigger(webhook=row["trigger_webhook"], channel=row["trigger_channel"]),
        _texts(row, "depends_on"),
        _texts(row, "on_success_of"),
        row["scheduler_version"],
        *_policies(row),
    )


def _texts(row: Row, name: str) -> tuple[Any, ...]:
    return tuple(map(str, a_list(row, name)))


def _policies(row: Row) -> tuple[Any, ...]:
    return (
        MisfirePolicy(
            grace=timedelta(seconds=row["misfire_grace_seconds"]),
            coalesce=row["coalesce"],
            catch_up=CatchUp(row["catch_up"]),
        ),
        OverlapPolicy(max_instances=row["max_instances"], overlap=Overlap(row["overlap"])),
        RetryPolicy(
            max_retries=row["max_retries"],
            backoff=timedelta(seconds=row["retry_backoff_seconds"]),
            jitter=row["retry_jitter"],
            on_lost=OnLost(row["on_lost"]),
        ),
        Retention(runs=row["retention_runs"], days=row["retention_days"]),
    )
