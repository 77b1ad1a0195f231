"""How executions and attempts look in their rows: columns are named as the fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from sqlalchemy import Row, RowMapping

from noonday.domain.execution import (
    Attempt,
    Cause,
    Execution,
    ExecutionId,
    ExecutionState,
    SkipReason,
    WaitReason,
)
from noonday.domain.job import JobId, Lane
from noonday.domain.outcome import NOTHING, Result, Usage
from noonday.store.jsontext import clean_text
from noonday.store.tables import executions

FIELDS = tuple(field.name for field in fields(Execution))
COLUMNS = tuple(executions.c[name] for name in FIELDS)
_TEXTS = frozenset({"detail", "error", "stack", "progress_message", "triggered_by", "cancel_requested_by"})
_ENUMS = frozenset({"cause", "state", "lane", "skip_reason", "wait_reason"})
_USAGE = tuple(field.name for field in fields(Usage))
_RESULT = tuple(field.name for field in fields(Result) if field.name != "usage")


def result_value(result: Result) -> dict[str, Any] | None:
    """The fields that say something; None for nothing at all."""
    if result is NOTHING or result == NOTHING:
        return None
    made = {name: value for name in _RESULT if (value := getattr(result, name)) not in (None, {})}
    usage = {name: value for name in _USAGE if (value := getattr(result.usage, name)) is not None}
    if "metadata" in made:
        made["metadata"] = dict(made["metadata"])
    return made | ({"usage": usage} if usage else {})


def read_result(value: Any) -> Result:
    if not isinstance(value, dict):
        return NOTHING
    known: dict[str, Any] = {name: value[name] for name in _RESULT if name in value}
    usage = value.get("usage") or {}
    return Result(**known, usage=Usage(**{name: usage.get(name) for name in _USAGE}))


def execution_values(execution: Execution, names: Iterable[str] = FIELDS) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name in names:
        value = getattr(execution, name)
        if value is not None:
            if name in _ENUMS:
                value = value.value
            elif name in _TEXTS:
                value = clean_text(value)
            elif name == "result":
                value = result_value(value)
            elif name == "config":
                value = dict(value)
        made[name] = value
    return made


def read_execution(row: Row[Any] | Mapping[str, Any]) -> Execution:
    made: dict[str, Any] = dict(zip(FIELDS, row, strict=False)) if isinstance(row, Row) else dict(row)
    return execution_from(made)


def execution_from(made: dict[str, Any]) -> Execution:
    """From the plain values of all fields, in a dict that is ours to change."""
    made["id"] = ExecutionId(made["id"])
    made["job_id"] = JobId(made["job_id"])
    made["cause"] = Cause(made["cause"])
    made["state"] = ExecutionState(made["state"])
    made["lane"] = Lane(made["lane"])
    if made["skip_reason"] is not None:
        made["skip_reason"] = SkipReason(made["skip_reason"])
    if made["wait_reason"] is not None:
        made["wait_reason"] = WaitReason(made["wait_reason"])
    made["result"] = read_result(made["result"])
    return Execution(**made)


def attempt_values(attempt: Attempt) -> dict[str, Any]:
    return {
        "execution_id": attempt.execution_id,
        "number": attempt.number,
        "outcome": attempt.outcome,
        "started_at": attempt.started_at,
        "completed_at": attempt.completed_at,
        "instance_id": attempt.instance_id,
        "error": None if attempt.error is None else clean_text(attempt.error),
        "stack": None if attempt.stack is None else clean_text(attempt.stack),
        "result": result_value(attempt.result),
    }


def read_attempt(row: Mapping[str, Any] | RowMapping) -> Attempt:
    made: dict[str, Any] = {str(name): value for name, value in row.items()}
    made["execution_id"] = ExecutionId(made["execution_id"])
    made["result"] = read_result(made["result"])
    return Attempt(**made)
