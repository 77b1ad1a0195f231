"""Rows of jobs, read by the thousand: to the same jobs as in `rows`, in a third of the time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Text, cast, type_coerce

from noonday.domain.job import Job
from noonday.domain.schedule import Once, Timing
from noonday.domain.target import PythonTarget, Target
from noonday.domain.wallclock import EARLIEST
from noonday.store.columns import Json
from noonday.store.dialects import Answers
from noonday.store.jsontext import Unreadable, loads
from noonday.store.rows import ALIKE, KEPT_FIELDS, alike_from_row, definition_from_row, state_of
from noonday.store.tables import jobs
from noonday.store.target_rows import read_target
from noonday.store.timing_rows import TIMING_COLUMNS, read_timing

T = TypeVar("T")
MOST_ALIKE: Final = 1000  # that are remembered
_KEPT: Final = len(KEPT_FIELDS)

_OWN: Final = (
    "id", "name", "run_at", "anchor_at", "created_at", "description", "tags", "source_id", "url", "target",
    "config", "metadata",
)  # fmt: skip
_REST: Final = (
    "priority", "timeout_seconds", "depends_on", "on_success_of", "scheduler_version", "max_instances",
    "overlap", "misfire_grace_seconds", "coalesce", "catch_up", "max_retries", "retry_backoff_seconds",
    "retry_jitter", "on_lost", "retention_runs", "retention_days",
    *(name for name in TIMING_COLUMNS if name not in _OWN),
)  # fmt: skip
_NAMES: Final = (*_OWN, *_REST)
_JSON: Final = tuple(name for name in _NAMES if isinstance(jobs.c[name].type, Json))
# The fields of a definition, in the order in which they are read here.
DEFINED: Final = (
    "id", "name", "timing", "target", "description", "tags", "source_id", "config", "metadata", "created_at",
    *ALIKE,
)  # fmt: skip


def defining_columns(dialect: Answers) -> list[ColumnElement[Any]]:
    """What `read_definition` reads. JSON as text: most of it is empty, and to see that takes no parser."""
    plain = type_coerce if dialect.name == "sqlite" else cast
    return [plain(jobs.c[name], Text) if name in _JSON else jobs.c[name] for name in _NAMES]


def read_definition(row: tuple[Any, ...]) -> dict[str, Any]:
    """The fields DEFINED, or those without their defaults; RowError where somebody made it unreadable."""
    try:
        return _quickly(row)
    except Exception:  # `rows` can tell what is wrong with it
        definition = definition_from_row(_parsed(dict(zip(_NAMES, row, strict=True))))
        return {name: definition[name] for name in DEFINED}


def _quickly(row: tuple[Any, ...]) -> dict[str, Any]:
    (
        job_id, name, run_at, anchor_at, created_at, description, tags, source_id, url, target, config,
        metadata,
    ) = row[: len(_OWN)]  # fmt: skip
    if Unreadable in (type(run_at), type(anchor_at), type(created_at)):
        raise ValueError
    like, alike = _alike(run_at is None, row[len(_OWN) :])
    made = alike.copy()
    made["id"] = job_id
    made["name"] = name or job_id
    made["timing"] = Timing(
        schedule=Once(run_at=run_at) if isinstance(like.schedule, Once) else like.schedule,
        anchor_at=anchor_at or like.start_at or created_at,
        timezone=like.timezone,
        start_at=like.start_at,
        end_at=like.end_at,
        max_runs=like.max_runs,
        jitter=like.jitter,
        availability=like.availability,
    )
    made["target"] = _target(url, target)
    if description != "":
        made["description"] = description
    if tags != "[]":
        made["tags"] = tuple(map(str, _read(list, tags)))
    if source_id is not None:
        made["source_id"] = source_id
    made["config"] = {} if config == "{}" else _read(dict, config)
    made["metadata"] = {} if metadata == "{}" else _read(dict, metadata)
    made["created_at"] = created_at
    return made


@lru_cache(maxsize=MOST_ALIKE)
def _alike(no_run_at: bool, values: tuple[Any, ...]) -> tuple[Timing, dict[str, Any]]:
    """What follows from the values of _REST alone: a timing in which the instants of one's own are still to
    be put, and the fields ALIKE without those that have their defaults, with room for the others."""
    row = dict(zip(_REST, values, strict=True))
    row |= {"run_at": None if no_run_at else EARLIEST, "anchor_at": EARLIEST, "created_at": EARLIEST}
    _parsed(row)
    alike = zip(ALIKE, alike_from_row(row), strict=True)
    return read_timing(row), _ROOM | {name: value for name, value in alike if value != getattr(Job, name)}


_ROOM: Final[dict[str, Any]] = dict.fromkeys(
    ("id", "name", "timing", "target", "config", "metadata", "created_at")
)


_shared: dict[tuple[str | None, str | None], Target] = {}


def _target(url: str | None, text: str | None) -> Target:
    """Many jobs have the same; but who wrote a task may change the arguments that it is given."""
    found = _shared.get((url, text))
    if found is None:
        found = read_target({"url": url, "target": None if text is None else loads(text)})
        if not isinstance(found, PythonTarget) or not (found.args or found.kwargs):
            if len(_shared) >= MOST_ALIKE:
                _shared.clear()
            _shared[url, text] = found
    return found


def _read(kind: type[T], text: str | None) -> T:
    found = kind() if text is None else loads(text)
    if not isinstance(found, kind):
        raise TypeError
    return found


def _parsed(row: dict[str, Any]) -> dict[str, Any]:
    for name in _JSON:
        if row.get(name) is not None:
            row[name] = loads(row[name])
    return row


def job_of(definition: dict[str, Any], kept: Sequence[Any]) -> Job:
    """As Job(...), of what people defined and a row that begins with the columns of KEPT_FIELDS. What most
    jobs have not is left out: a dictionary of more than 21 fields takes twice the memory."""
    state = state_of(kept)
    made = definition.copy()  # first: it costs a third of putting them in one by one
    (
        _, made["revision"], made["updated_at"], _, made["enabled"], made["paused"],
        paused_until, skipped_through, made["next_run_at"], made["last_run_at"],
        last_status, made["fire_count"], made["retry_count"],
    ) = kept[:_KEPT]  # fmt: skip
    if paused_until is not None:
        made["paused_until"] = paused_until
    if skipped_through is not None:
        made["skipped_through"] = skipped_through
    if last_status is not None:
        made["last_status"] = last_status
    made["state"] = state
    return Job.of(made)
