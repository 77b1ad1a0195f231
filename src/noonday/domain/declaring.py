"""What a service declares of its job: a three-way merge, in which a field that a person changed stays theirs.

The three are what the service last said, what it says now, and the job as it is. Fields have the names that
services use on the wire; `config` and `metadata` are merged key by key, as `config.batchSize`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from enum import Enum
from functools import reduce
from typing import Any, Final

from noonday.domain.job import Job, JobState
from noonday.domain.schedule import Cron, Schedule
from noonday.domain.target import ServiceTarget

__all__ = [
    "ENABLED",
    "IN_METADATA",
    "Kept",
    "Merge",
    "Override",
    "as_declared",
    "declared",
    "fields_of",
    "merge",
    "ordered",
]

Fields = Mapping[str, Any]  # plain JSON by the name of the field
Override = bool | frozenset[str]  # the service's own word goes: everywhere, or in these fields

ENABLED: Final = "enabled"
_PLACES: Final[Mapping[str, tuple[str, ...]]] = {
    "description": ("description",),
    "tags": ("tags",),
    "cronExpression": ("timing", "schedule"),
    "timezone": ("timing", "timezone"),
    ENABLED: ("enabled",),
    "priority": ("lane",),
    "timeoutSeconds": ("timeout",),
    "maxRetries": ("retry", "max_retries"),
    "retryBackoffSeconds": ("retry", "backoff"),
    "misfireGraceSeconds": ("misfire", "grace"),
    "maxInstances": ("overlapping", "max_instances"),
    "overlap": ("overlapping", "overlap"),
    "dependsOn": ("depends_on",),
    "onSuccessOf": ("on_success_of",),
}
_OF_TARGET: Final = ("service", "endpoint")
IN_METADATA: Final = {"displayName": "display_name", "jobType": "job_type", "critical": "critical"}
_OWN_NAMES: Final = {key: name for name, key in IN_METADATA.items()}


class _Nothing(Enum):
    HERE = None


_NOTHING: Final = _Nothing.HERE


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """A field in which the job does not follow the declaration."""

    field: str
    declared: Any
    kept: Any
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merge:
    taken: tuple[str, ...] = ()  # the fields in which the job follows the declaration from now on
    kept: tuple[Kept, ...] = ()


def fields_of(job: Job) -> dict[str, Any]:
    """Everything a declaration may say, as it is in this job."""
    return _fields_of(job, _PLACES)


def _fields_of(job: Job, named: Collection[str]) -> dict[str, Any]:
    """Of those that every job has, the named ones alone."""
    found = {name: _plain(reduce(getattr, place, job)) for name, place in _PLACES.items() if name in named}
    target = job.target
    for name in _OF_TARGET:
        found[name] = getattr(target, name) if isinstance(target, ServiceTarget) else f"({target.type})"
    for key, value in job.config.items():
        found[f"config.{key}"] = value
    for key, value in job.metadata.items():
        found[_OWN_NAMES.get(key, f"metadata.{key}")] = value
    return found


def declared(job: Job, named: Collection[str]) -> dict[str, Any]:
    """What a declaration says: of the job made from it, the fields that it names."""
    return {name: value for name, value in _fields_of(job, named).items() if _covers(named, name)}


def merge(*, last: Fields | None, new: Fields, usual: Fields, job: Job, override: Override = False) -> Merge:
    """Which fields of the job follow the new declaration.

    A field that was not declared before, or is not any more, counts as declared with its usual value.
    """
    if job.state is JobState.CANCELLED:
        reason = "the job was cancelled for good: delete it to have it registered anew"
        return Merge(kept=(Kept(field="status", declared=None, kept=job.state.value, reason=reason),))
    now, before = fields_of(job), last or {}
    taken: list[str] = []
    kept: list[Kept] = []
    for name in sorted({*before, *new}):
        ordinary = usual.get(name, _NOTHING)
        said, wanted, here = before.get(name, ordinary), new.get(name, ordinary), now.get(name, _NOTHING)
        if _same(wanted, here):
            continue
        if _same(said, here) or override is True or (override and _covers(override, name)):
            taken.append(name)
        else:
            kept.append(Kept(field=name, declared=_shown(wanted), kept=_shown(here), reason=_why(last)))
    return Merge(taken=tuple(taken), kept=tuple(kept))


def as_declared(job: Job, wanted: Job, names: Iterable[str]) -> Job:
    """The job with these fields as they are in the wanted one."""
    for name in names:
        if name in _PLACES:
            place = _PLACES[name]
            job = _with(job, place, reduce(getattr, place, wanted))
        elif name in _OF_TARGET:
            job = _with_target(job, wanted, name)
        else:
            job = _with_key(job, wanted, name)
    return job


def ordered(jobs: Iterable[Job]) -> list[Job]:
    """Each after those it names as the ones before it, as far as they are among these."""
    waiting = {job.name: job for job in jobs}
    result: list[Job] = []

    def put(job: Job) -> None:
        del waiting[job.name]
        for parent in (*job.depends_on, *job.on_success_of):
            if parent in waiting:
                put(waiting[parent])
        result.append(job)

    while waiting:
        put(next(iter(waiting.values())))
    return result


def _covers(names: Collection[str], name: str) -> bool:
    return name in names or name.partition(".")[0] in names


def _why(last: Fields | None) -> str:
    if last is None:
        return "the job was there before it was declared"
    return "it was changed here since it was last declared"


def _with(thing: Any, place: tuple[str, ...], value: Any) -> Any:
    first, *rest = place
    return replace(thing, **{first: _with(getattr(thing, first), tuple(rest), value) if rest else value})


def _with_target(job: Job, wanted: Job, name: str) -> Job:
    if isinstance(job.target, ServiceTarget) and isinstance(wanted.target, ServiceTarget):
        return replace(job, target=replace(job.target, **{name: getattr(wanted.target, name)}))
    return replace(job, target=wanted.target)


def _with_key(job: Job, wanted: Job, name: str) -> Job:
    holder, _, key = name.partition(".") if name not in IN_METADATA else ("metadata", "", IN_METADATA[name])
    here, there = getattr(job, holder), getattr(wanted, holder)
    if key in there:
        made = {**here, key: there[key]}
    else:
        made = {other: value for other, value in here.items() if other != key}
    kept: Job = _with(job, (holder,), made)
    return kept


def _same(one: Any, other: Any) -> bool:
    """As JSON has it: true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other)


def _shown(value: Any) -> Any:
    return None if value is _NOTHING else value


def _plain(value: Any) -> Any:
    match value:
        case Cron():
            return value.expression
        case Enum():
            return value.value
        case timedelta():
            return value.total_seconds()
        case tuple():
            return list(value)
        case str() | bool() | int() | float() | None:
            return value
        case _:
            return _other_schedule(value)


def _other_schedule(schedule: Schedule) -> str:
    """Of a kind that services do not declare: a person gave it to the job."""
    words = (str(getattr(schedule, field.name)) for field in fields(schedule) if field.name != "type")
    return f"({' '.join([schedule.type, *words])})"
