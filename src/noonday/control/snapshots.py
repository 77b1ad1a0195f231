"""A job as the audit trail keeps it: plain JSON, secrets masked, and of a change only what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from functools import lru_cache
from typing import Any

from noonday.control.secrets import looks_secret, redacted
from noonday.domain.calendar import Availability
from noonday.domain.job import Job, MisfirePolicy, OverlapPolicy, Retention, RetryPolicy, Trigger

_NUMBERS = frozenset({int, float, bool, type(None)})
_CONTAINERS = frozenset({dict, list, tuple, frozenset})
_FIELDS: dict[type[Any], tuple[str, ...] | None] = {}

# What the scheduler itself moves with each run is history, not a change that somebody made.
_MOVING = frozenset(
    {
        *("next_run_at", "skipped_through", "last_run_at", "last_status"),
        *("fire_count", "retry_count", "updated_at"),
    }
)

_KEPT = tuple((field.name, looks_secret(field.name)) for field in fields(Job) if field.name not in _MOVING)
_COMMON = (Availability, MisfirePolicy, OverlapPolicy, Retention, RetryPolicy, Trigger)


def snapshot(job: Job) -> dict[str, Any]:
    return {name: _shown(getattr(job, name), secret) for name, secret in _KEPT}


def snapshots(made: Iterable[Job]) -> list[dict[str, Any]]:
    """Of many: what one has of the one before it, as jobs that were made together, need not be shown anew."""
    found: list[dict[str, Any]] = []
    before: Job | None = None
    for job in made:
        if before is None:
            shown = snapshot(job)
        else:
            shown = shown.copy()
            for name, secret in _KEPT:
                new, old = getattr(job, name), getattr(before, name)
                if new is not old:
                    shown[name] = _again(new, secret, old, shown[name])
        found.append(shown)
        before = job
    return found


def _again(value: Any, secret: bool, before: Any, shown: Any) -> Any:
    """As `_shown`, where another value is shown already."""
    names = _names(type(value))
    if names is None or type(before) is not type(value):
        return _shown(value, secret)
    made = dict(shown)
    for name in names:
        new, old = getattr(value, name), getattr(before, name)
        if new is not old:
            made[name] = _again(new, secret or looks_secret(name), old, made[name])
    return made


def _shown(value: Any, secret: bool) -> Any:
    """As `redacted(plain(value))`, in one go."""
    kind = type(value)
    if kind in _NUMBERS and not secret:
        return value
    if kind is str or kind in _NUMBERS:
        return redacted(value, secret=secret)
    if not value and kind in _CONTAINERS:
        return {} if kind is dict else []
    names = _names(kind)
    if names is None:
        return redacted(plain(value), secret=secret)
    if isinstance(value, _COMMON) and not secret:
        return _common(value)
    return {name: _shown(getattr(value, name), secret or looks_secret(name)) for name in names}


@lru_cache(maxsize=256)
def _common(value: Any) -> Any:
    """Most jobs have the same few of these."""
    return redacted(plain(value))


def difference(before: Job, after: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields that differ, as they were and as they are; a changed secret is named, not shown."""
    old, new = plain(before), plain(after)
    changed = [name for name in new if name not in _MOVING and old[name] != new[name]]
    return _masked(old, changed), _masked(new, changed)


def _masked(values: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    return {name: redacted(values[name], secret=looks_secret(name)) for name in names}


def plain(value: Any) -> Any:
    names = _names(type(value))
    if names is not None:
        return {name: plain(getattr(value, name)) for name in names}
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


def _names(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a dataclass; None of anything else."""
    try:
        return _FIELDS[kind]
    except KeyError:
        return _FIELDS.setdefault(
            kind, tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None
        )
