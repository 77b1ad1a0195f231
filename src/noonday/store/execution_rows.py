"""How executions and attempts look in their rows: columns are named as the fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import RowMapping

from noonday.domain.execution import (
    Attempt,
    Cause,
    Execution,
    ExecutionId,
    ExecutionState,
    Road,
    SkipReason,
    WaitReason,
)
from noonday.domain.job import Job, JobId, Lane
from noonday.domain.outcome import NOTHING, Result, Usage
from noonday.store.jsontext import clean_text
from noonday.store.tables import executions

FIELDS = tuple(field.name for field in fields(Execution))
COLUMNS = tuple(executions.c[name] for name in FIELDS)
NO_USAGE = NOTHING.usage
_USAGE = tuple(field.name for field in fields(Usage))
_RESULT = tuple(field.name for field in fields(Result) if field.name != "usage")


class Waiting(NamedTuple):
    """What a claim reads of what waits; of one that was never claimed nothing else says anything."""

    id: ExecutionId
    job_id: JobId
    cause: str
    scheduled_for: datetime
    available_at: datetime
    state: str
    lane: int
    number: int
    covers_from: datetime | None
    wait_reason: str | None
    detail: str | None
    triggered_by: str | None
    config: Any
    attempt: int
    claimed_at: datetime | None
    trace_id: str | None
    created_at: datetime
    road: int

    @property
    def untouched(self) -> bool:
        """Was it never claimed?"""
        return self.attempt == 0 and self.claimed_at is None


WAITING_COLUMNS = tuple(executions.c[name] for name in Waiting._fields)


def result_value(result: Result) -> dict[str, Any] | None:
    """The fields that say something; None for nothing at all."""
    if result is NOTHING:
        return None
    made = {name: value for name in _RESULT if (value := getattr(result, name)) is not None}
    made["metadata"] = dict(result.metadata)
    if not made["metadata"]:
        del made["metadata"]
    if result.usage is not NO_USAGE:
        usage = {name: value for name in _USAGE if (value := getattr(result.usage, name)) is not None}
        made |= {"usage": usage} if usage else {}
    return made or None


def read_result(value: Any) -> Result:
    if not isinstance(value, dict):
        return NOTHING
    known: dict[str, Any] = {name: value[name] for name in _RESULT if name in value}
    usage = value.get("usage") or {}
    return Result(**known, usage=Usage(**{name: usage.get(name) for name in _USAGE}))


def planned_values(execution: Execution) -> dict[str, Any]:
    """What planning writes of an execution."""
    skip, wait, config = execution.skip_reason, execution.wait_reason, execution.config
    return {
        "id": execution.id,
        "job_id": execution.job_id,
        "cause": execution.cause.value,
        "scheduled_for": execution.scheduled_for,
        "available_at": execution.available_at,
        "state": execution.state.value,
        "lane": execution.lane.value,
        "number": execution.number,
        "covers_from": execution.covers_from,
        "through_at": execution.through_at,
        "skipped_count": execution.skipped_count,
        "skip_reason": None if skip is None else skip.value,
        "wait_reason": None if wait is None else wait.value,
        "detail": _clean(execution.detail),
        "triggered_by": _clean(execution.triggered_by),
        "config": None if config is None else dict(config),
        "completed_at": execution.completed_at,
        "error": _clean(execution.error),
        "stack": _clean(execution.stack),
        "trace_id": execution.trace_id,
        "created_at": execution.created_at,
        "road": execution.road.value,
    }


def settled_values(execution: Execution) -> dict[str, Any]:
    """What settling may change of an execution."""
    wait = execution.wait_reason
    return {
        "id": execution.id,
        "state": execution.state.value,
        "available_at": execution.available_at,
        "wait_reason": None if wait is None else wait.value,
        "detail": _clean(execution.detail),
        "failures": execution.failures,
        "losses": execution.losses,
        "lease_token": execution.lease_token,
        "lease_expires_at": execution.lease_expires_at,
        "deadline_at": execution.deadline_at,
        "remote": execution.remote,
        "cancel_url": execution.cancel_url,
        "instance_id": execution.instance_id,
        "started_at": execution.started_at,
        "completed_at": execution.completed_at,
        "progress": execution.progress,
        "progress_message": _clean(execution.progress_message),
        "error": _clean(execution.error),
        "stack": _clean(execution.stack),
        "result": result_value(execution.result),
    }


def _clean(text: str | None) -> str | None:
    return None if text is None else clean_text(text)


_CAUSES = {cause.value: cause for cause in Cause}
_STATES = {state.value: state for state in ExecutionState}
_ROADS = {road.value: road for road in Road}
_LANES = {lane.value: lane for lane in Lane}
_SKIPS = {None: None} | {reason.value: reason for reason in SkipReason}
_WAITS = {None: None} | {reason.value: reason for reason in WaitReason}


def read_execution(row: Sequence[Any]) -> Execution:
    """From a row of COLUMNS."""
    return Execution.of(read_fields(row))


def read_fields(row: Sequence[Any]) -> dict[str, Any]:
    """The fields of an execution, from the first values of a row of COLUMNS."""
    made = dict(zip(FIELDS, row, strict=False))
    made["cause"] = _CAUSES[made["cause"]]
    made["state"] = _STATES[made["state"]]
    made["lane"] = _LANES[made["lane"]]
    made["road"] = _ROADS[made["road"]]
    made["skip_reason"] = _SKIPS[made["skip_reason"]]
    made["wait_reason"] = _WAITS[made["wait_reason"]]
    made["result"] = NOTHING if made["result"] is None else read_result(made["result"])
    return made


def waiting_fields(one: Waiting) -> dict[str, Any]:
    """What is to be said of an untouched execution."""
    made = one._asdict()
    made["cause"] = _CAUSES[one.cause]
    made["state"] = _STATES[one.state]
    made["lane"] = _LANES[one.lane]
    made["road"] = _ROADS[one.road]
    made["wait_reason"] = _WAITS[one.wait_reason]
    return made


def first_attempts(now: datetime, lease_until: datetime, instance_id: str) -> dict[str, Any]:
    """What all untouched executions have the same that are claimed at once, with room for their own."""
    alike = {
        "state": ExecutionState.RUNNING,
        "attempt": 1,
        "lease_expires_at": lease_until,
        "instance_id": instance_id,
        "claimed_at": now,
    }
    return dict.fromkeys(_FIRST) | alike


_FIRST: Final = (
    "id", "job_id", "cause", "scheduled_for", "available_at", "state", "lane", "number", "covers_from",
    "triggered_by", "config", "attempt", "claimed_at", "trace_id", "created_at", "road", "lease_token",
    "lease_expires_at", "deadline_at", "instance_id", "started_at",
)  # fmt: skip


def started_fields(
    one: Waiting, job: Job, alike: dict[str, Any], token: str, starts_at: datetime
) -> dict[str, Any]:
    """What is to be said of an untouched execution that is claimed for its first attempt."""
    made = alike.copy()  # a copy has its room already: it grows no more
    (
        made["id"], _, cause, made["scheduled_for"], made["available_at"], _, lane,
        made["number"], made["covers_from"], _, _, made["triggered_by"], made["config"], _, _,
        made["trace_id"], made["created_at"], road,
    ) = one  # fmt: skip
    made["job_id"] = job.id  # the same text, not another one like it
    made["cause"] = _CAUSES[cause]
    made["lane"] = _LANES[lane]
    made["road"] = _ROADS[road]
    made["lease_token"] = token
    made["started_at"] = starts_at
    made["deadline_at"] = starts_at + job.timeout
    return made


def attempt_values(attempt: Attempt) -> dict[str, Any]:
    """All of an attempt but its result, which its execution has as well."""
    return {
        "execution_id": attempt.execution_id,
        "number": attempt.number,
        "outcome": attempt.outcome,
        "started_at": attempt.started_at,
        "completed_at": attempt.completed_at,
        "instance_id": attempt.instance_id,
        "error": _clean(attempt.error),
        "stack": _clean(attempt.stack),
    }


def read_attempt(row: Mapping[str, Any] | RowMapping) -> Attempt:
    made: dict[str, Any] = {str(name): value for name, value in row.items()}
    made["execution_id"] = ExecutionId(made["execution_id"])
    made["result"] = read_result(made["result"])
    return Attempt(**made)
