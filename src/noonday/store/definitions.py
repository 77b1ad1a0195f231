"""Definitions of jobs, kept in memory by revision: they are read far more often than changed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Select, select

from noonday.domain.job import Job
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared
from noonday.store.reading import Row, RowError
from noonday.store.rows import definition_from_row, kept_from_row
from noonday.store.tables import jobs

GENERATION: Final = 5_000  # two generations are held at most

# What a caller must select to make a Job through this cache.
KEPT: Final = tuple(
    jobs.c[name]
    for name in (
        "id",
        "revision",
        "updated_at",
        "status",
        "schedule_enabled",
        "is_paused",
        "paused_until",
        "skipped_through",
        "next_run_at",
        "last_run_at",
        "last_status",
        "fire_count",
        "current_retry_count",
    )
)
KEPT_NAMES: Final = tuple(column.name for column in KEPT)
Definition = dict[str, Any] | RowError
_Key = tuple[str, int, object]


class _Shelf:
    """The definitions of one database; what was not asked for during a whole generation is forgotten."""

    def __init__(self) -> None:
        self.young: dict[_Key, Definition] = {}
        self.old: dict[_Key, Definition] = {}

    def take(self, key: _Key) -> Definition | None:
        found = self.young.get(key)
        if found is None:
            found = self.old.get(key)
            if found is not None:
                self.put(key, found)
        return found

    def put(self, key: _Key, definition: Definition) -> None:
        if len(self.young) >= GENERATION:
            self.old, self.young = self.young, {}
        self.young[key] = definition


_shelves: WeakKeyDictionary[Engine, _Shelf] = WeakKeyDictionary()


def jobs_of(conn: Connection, rows: Iterable[Row]) -> dict[str, Job | RowError]:
    """The jobs of rows that have the KEPT columns: the definition from memory, the rest from the row."""
    shelf = _shelves.setdefault(conn.engine, _Shelf())
    wanted = {row["id"]: row for row in rows}
    found: dict[str, Definition] = {}
    for job_id, row in wanted.items():
        definition = shelf.take(_key(row))
        if definition is not None:
            found[job_id] = definition
    missing = wanted.keys() - found.keys()
    if missing:
        for full in _whole(conn, ids=missing).mappings().all():
            found[full["id"]] = definition = _read(full)
            shelf.put(_key(full), definition)
    return {job_id: _job(definition, wanted[job_id]) for job_id, definition in found.items()}


@prepared
def _whole(dialect: Answers) -> Select[Any]:
    return select(jobs).where(dialect.listed(jobs.c.id, "ids"))


def _key(row: Row) -> _Key:
    # updated_at too: a revision may have been rolled back and given again to something else
    return row["id"], row["revision"], str(row["updated_at"])


def _read(row: Row) -> Definition:
    try:
        return definition_from_row(row)
    except RowError as exc:
        return exc


def _job(definition: Definition, row: Row) -> Job | RowError:
    if isinstance(definition, RowError):
        return definition
    try:
        return Job(**definition, **kept_from_row(row))
    except RowError as exc:
        return exc
