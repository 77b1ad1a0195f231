"""Jobs: added, read, locked, saved and removed; with the verbs of search and planning beside them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, CursorResult, Delete, Select, Text, bindparam, delete, or_, select
from sqlalchemy.exc import IntegrityError

from noonday.domain.errors import Conflict, NotFound
from noonday.domain.job import Job, JobId
from noonday.store import dialects
from noonday.store.alike import insert_alike
from noonday.store.columns import Id
from noonday.store.definitions import KEPT, readable_jobs
from noonday.store.dialects import Answers
from noonday.store.front_tables import declarations
from noonday.store.job_cursors import (
    Advance,
    BadRow,
    Due,
    advance,
    changed,
    clear_stale_locks,
    due,
    many_due,
    next_due_at,
    skip_through,
)
from noonday.store.job_search import (
    JobFilter,
    count,
    count_by_state,
    edges_above,
    find,
    ids_of,
    known,
    named,
    some,
)
from noonday.store.notices import CANCEL, JOBS, tell
from noonday.store.prepared import prepared, quick
from noonday.store.reading import RowError, may_be_id
from noonday.store.rows import job_from_row, job_rows, job_values
from noonday.store.tables import CLEAN, DEPENDS_ON, ON_SUCCESS_OF, job_dependencies, jobs

__all__ = [
    "Advance",
    "BadRow",
    "Due",
    "JobFilter",
    "add",
    "add_many",
    "advance",
    "by_name",
    "changed",
    "clear_stale_locks",
    "count",
    "count_by_state",
    "due",
    "edges_above",
    "find",
    "get",
    "ids_of",
    "known",
    "lock",
    "many_due",
    "named",
    "next_due_at",
    "remove",
    "resolve",
    "save",
    "skip_through",
    "some",
    "untouched",
]


def add(conn: Connection, job: Job) -> Job:
    if holders := _holder(conn, name=job.name, job_id=job.id):
        raise _taken(job, holders[0][0])
    try:
        dialects.of(conn).insert(conn, jobs, [job_values(job)]).count()
    except IntegrityError as exc:  # somebody was faster
        raise _taken(job, None) from exc
    dialects.of(conn).insert(conn, job_dependencies, _edges(job))
    tell(conn, JOBS)
    return job


@quick
def _holder(_: Answers) -> Select[Any]:
    return select(jobs.c.id).where(or_(_NAMED, _ITSELF))


def add_many(conn: Connection, made: Sequence[Job]) -> None:
    """As `add`, for very many at once."""
    try:
        insert_alike(conn, jobs, job_rows(made)).count()
    except IntegrityError as exc:
        raise Conflict("one of the ids or names is taken by another job") from exc
    edges = [edge for job in made for edge in _edges(job)]
    dialects.of(conn).insert(conn, job_dependencies, edges)
    tell(conn, JOBS)


def _taken(job: Job, holder: str | None) -> Conflict:
    if holder == job.id:
        return Conflict(f"a job with the id {job.id} already exists")
    return Conflict(f"the name {job.name!r} is taken by another job")


def get(conn: Connection, job_id: str) -> Job | None:
    return _one(_by_id(conn, job_id=job_id)) if may_be_id(conn, job_id) else None


def by_name(conn: Connection, name: str) -> Job | None:
    return _one(_by_name(conn, name=name))


def untouched(conn: Connection, ids: Collection[JobId]) -> dict[str, Job]:
    """Those of them that can be read and that nobody has changed behind our back."""
    return readable_jobs(conn, _untouched(conn, ids=ids).all())


@prepared
def _untouched(dialect: Answers) -> Select[Any]:
    return select(*KEPT).where(CLEAN, dialect.listed(jobs.c.id, "ids"))


def resolve(conn: Connection, id_or_name: str) -> Job:
    """By id, else by name; NotFound says what was asked for."""
    return _resolve(conn, id_or_name, _by_id, _by_name)


def lock(conn: Connection, id_or_name: str) -> Job:
    """As `resolve`, and nobody else plans, claims, settles or changes the job until this transaction ends."""
    return _resolve(conn, id_or_name, _lock_by_id, _lock_by_name)


_ITSELF: Final = jobs.c.id == bindparam("job_id", type_=Id)
_NAMED: Final = jobs.c.name == bindparam("name", type_=Text)


@prepared
def _by_id(_: Answers) -> Select[Any]:
    return select(jobs).where(_ITSELF)


@prepared
def _by_name(_: Answers) -> Select[Any]:
    return select(jobs).where(_NAMED)


@prepared
def _lock_by_id(dialect: Answers) -> Select[Any]:
    return dialect.locked(select(jobs).where(_ITSELF), jobs)


@prepared
def _lock_by_name(dialect: Answers) -> Select[Any]:
    return dialect.locked(select(jobs).where(_NAMED), jobs)


def _resolve(conn: Connection, id_or_name: str, by_id: prepared, by_name: prepared) -> Job:
    found: Job | None = None
    if may_be_id(conn, id_or_name):
        found = _one(by_id(conn, job_id=id_or_name))
    if found is None:
        found = _one(by_name(conn, name=id_or_name))
    if found is None:
        raise NotFound(f"there is no job {id_or_name!r}")
    return found


def _one(found: CursorResult[*tuple[Any, ...]]) -> Job | None:
    row = found.mappings().first()
    if row is None:
        return None
    try:
        return job_from_row(row)
    except RowError as exc:
        raise Conflict(f"the row of job {row['id']} cannot be read: {exc}") from exc


def save(conn: Connection, job: Job) -> Job:
    """Write a job read with `lock`; its revision grows."""
    saved = replace(job, revision=job.revision + 1)
    try:
        done = dialects.of(conn).update(conn, jobs, [job_values(saved)]).count()
    except IntegrityError as exc:
        raise _taken(job, None) from exc
    if not done:
        raise NotFound(f"there is no job {job.id!r}")
    _write_edges(conn, saved)
    tell(conn, JOBS)
    return saved


def _write_edges(conn: Connection, job: Job) -> None:
    _forget_edges(conn, job_id=job.id)
    dialects.of(conn).insert(conn, job_dependencies, _edges(job))


@prepared
def _forget_edges(_: Answers) -> Delete:
    return delete(job_dependencies).where(job_dependencies.c.job_id == bindparam("job_id", type_=Id))


def _edges(job: Job) -> list[dict[str, str]]:
    edges = [(parent, DEPENDS_ON) for parent in dict.fromkeys(job.depends_on)]
    edges += [(parent, ON_SUCCESS_OF) for parent in dict.fromkeys(job.on_success_of)]
    return [{"job_id": job.id, "parent_id": parent, "kind": kind} for parent, kind in edges]


def remove(conn: Connection, job_id: JobId) -> bool:
    """A trigger cancels what is open; the pruner clears the history away in small steps."""
    done = conn.execute(delete(jobs).where(jobs.c.id == job_id))
    conn.execute(delete(declarations).where(declarations.c.job_id == job_id))
    tell(conn, JOBS)
    tell(conn, CANCEL)
    return bool(done.rowcount)
