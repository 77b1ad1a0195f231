"""Definitions of jobs, kept in memory by revision: they are read far more often than changed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Select, select

from noonday.domain.job import Job
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared
from noonday.store.quick_rows import defining_columns, job_of, read_definition
from noonday.store.reading import RowError
from noonday.store.rows import KEPT_NAMES
from noonday.store.tables import jobs

__all__ = ["KEPT", "KEPT_NAMES", "jobs_from", "jobs_of", "readable_jobs"]

GENERATION: Final = 10_000  # two generations are held at most

# What a caller must select first to make a Job through this cache.
KEPT: Final = tuple(jobs.c[name] for name in KEPT_NAMES)


class Definition(NamedTuple):
    """What people defined of a job, as it was in one revision."""

    revision: int
    updated_at: object  # too: a revision may have been rolled back and given again to something else
    fields: dict[str, Any] | RowError


class _Shelf:
    """The definitions of one database; what was not asked for during a whole generation is forgotten."""

    def __init__(self) -> None:
        self.young: dict[str, Definition] = {}
        self.old: dict[str, Definition] = {}

    def take(self, job_id: str) -> Definition | None:
        found = self.young.get(job_id)
        if found is None:
            found = self.old.get(job_id)
            if found is not None:
                self.put(job_id, found)
        return found

    def put(self, job_id: str, definition: Definition) -> None:
        if len(self.young) >= GENERATION:
            self.old, self.young = self.young, {}
        self.young[job_id] = definition


_shelves: WeakKeyDictionary[Engine, _Shelf] = WeakKeyDictionary()


def jobs_of(conn: Connection, rows: Sequence[Sequence[Any]]) -> dict[str, Job | RowError]:
    """The jobs of rows that begin with the KEPT columns: the definition from memory, the rest from them."""
    made = zip(rows, jobs_from(conn, rows), strict=True)
    return {row[0]: job for row, job in made if job is not None}


def readable_jobs(conn: Connection, rows: Sequence[Sequence[Any]]) -> dict[str, Job]:
    """As `jobs_of`, without those that cannot be read, in the order of the rows."""
    return {job_id: job for job_id, job in jobs_of(conn, rows).items() if isinstance(job, Job)}


def jobs_from(conn: Connection, rows: Iterable[Sequence[Any]]) -> list[Job | RowError | None]:
    """As `jobs_of`, one for each row; None if the job is gone."""
    shelf = _shelves.setdefault(conn.engine, _Shelf())
    made: list[Job | RowError | None] = []
    missing: list[tuple[int, Sequence[Any]]] = []
    for place, row in enumerate(rows):
        definition = shelf.take(row[0])
        if definition is not None and definition.revision == row[1] and definition.updated_at == row[2]:
            made.append(_job(definition, row))
        else:
            made.append(None)
            missing.append((place, row))
    if missing:
        read = _read_all(conn, shelf, [row[0] for _, row in missing])
        for place, row in missing:
            made[place] = _job(read[row[0]], row) if row[0] in read else None
    return made


def _read_all(conn: Connection, shelf: _Shelf, ids: Sequence[str]) -> dict[str, Definition]:
    found = {}
    for part in _whole(conn, ids=ids).partitions(50):
        for row in part:
            found[row[2]] = definition = Definition(row[0], row[1], _read(row[2:]))
            shelf.put(row[2], definition)
    return found


@prepared
def _whole(dialect: Answers) -> Select[Any]:
    query = select(jobs.c.revision, jobs.c.updated_at, *defining_columns(dialect))
    return query.where(dialect.listed(jobs.c.id, "ids"))


def _read(row: tuple[Any, ...]) -> dict[str, Any] | RowError:
    try:
        return read_definition(row)
    except RowError as exc:
        return exc


def _job(definition: Definition, row: Sequence[Any]) -> Job | RowError:
    fields = definition.fields
    if isinstance(fields, RowError):
        return fields
    try:
        return job_of(fields, row)
    except RowError as exc:
        return exc
