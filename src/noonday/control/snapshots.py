"""A job as the audit trail keeps it: plain JSON, secrets masked, and of a change only what changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from typing import Any

from noonday.control.secrets import looks_secret, redacted
from noonday.domain.job import Job

# What the scheduler itself moves with each run is history, not a change that somebody made.
_MOVING = frozenset(
    {
        *("next_run_at", "skipped_through", "last_run_at", "last_status"),
        *("fire_count", "retry_count", "updated_at"),
    }
)


def snapshot(job: Job) -> dict[str, Any]:
    shown: dict[str, Any] = redacted(plain(job))
    return {name: value for name, value in shown.items() if name not in _MOVING}


def difference(before: Job, after: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that differ, as they were and as they are; a changed secret is named, not shown."""
    old, new = plain(before), plain(after)
    changed = [name for name in new if name not in _MOVING and old[name] != new[name]]
    return _masked(old, changed), _masked(new, changed)


def _masked(values: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: redacted(values[name], secret=looks_secret(name)) for name in names}


def plain(value: Any) -> Any:
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    match value:
        case Enum():
            return value.value
        case timedelta():
            return value.total_seconds()
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case frozenset():
            return sorted(map(plain, value))
        case list() | tuple():
            return [plain(item) for item in value]
        case _:
            return value
