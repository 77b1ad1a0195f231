"""What services last said of their jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from noonday.domain.job import JobId
from noonday.store import dialects
from noonday.store.alike import insert_alike
from noonday.store.front_tables import declarations
from noonday.store.owners import owner
from noonday.store.tables import jobs

__all__ = ["Declared", "add_many", "beside", "clear", "get", "lock_all", "of", "owners", "put"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    job_id: JobId
    service: str
    body: Mapping[str, Any]
    declared_at: datetime


def get(conn: Connection, job_id: JobId) -> Declared | None:
    row = conn.execute(select(declarations).where(declarations.c.job_id == job_id)).mappings().first()
    return None if row is None else Declared(**row)


def of(conn: Connection, ids: Collection[JobId]) -> dict[JobId, Declared]:
    query = select(declarations).where(dialects.of(conn).among(declarations.c.job_id, ids))
    found = [Declared(**row) for row in conn.execute(query).mappings()]
    return {one.job_id: one for one in found}


def beside(conn: Connection, service: str, names: Collection[str]) -> list[Declared]:
    """What a service said of its other jobs, by name."""
    query = (
        select(declarations)
        .join(jobs, jobs.c.id == declarations.c.job_id)
        .where(declarations.c.service == service, ~dialects.of(conn).among(jobs.c.name, names))
        .order_by(jobs.c.name)
    )
    return [Declared(**row) for row in conn.execute(query).mappings()]


def owners(conn: Connection, ids: Collection[JobId]) -> dict[JobId, str]:
    """The services that these jobs belong to, without those that belong to nobody in particular."""
    query = select(jobs.c.id, owner(conn)).where(dialects.of(conn).among(jobs.c.id, ids))
    return {JobId(job_id): service for job_id, service in conn.execute(query) if service is not None}


def lock_all(conn: Connection, service: str, names: Collection[str], *, own: bool = True) -> dict[str, JobId]:
    """The jobs of these names and, with `own`, all of the service; their ids by their names.

    In an order that is the same for everybody.
    """
    dialect = dialects.of(conn)
    wanted = dialect.among(jobs.c.name, names)
    if own:
        said = select(declarations.c.job_id).where(declarations.c.service == service)
        wanted = or_(wanted, jobs.c.id.in_(said))
    query = select(jobs.c.name, jobs.c.id).where(wanted).order_by(jobs.c.id)
    return {name: JobId(job_id) for name, job_id in conn.execute(dialect.locked(query, jobs))}


def add_many(conn: Connection, said: Sequence[Declared]) -> None:
    """Of jobs that are new."""
    rows = [
        {"job_id": one.job_id, "service": one.service, "body": dict(one.body), "declared_at": one.declared_at}
        for one in said
    ]
    insert_alike(conn, declarations, rows)


def put(conn: Connection, said: Declared) -> None:
    """Needs the lock of the job."""
    values = {"service": said.service, "body": dict(said.body), "declared_at": said.declared_at}
    done = conn.execute(update(declarations).where(declarations.c.job_id == said.job_id).values(values))
    if not done.rowcount:
        conn.execute(insert(declarations).values({"job_id": said.job_id, **values}))


def clear(conn: Connection, service: str) -> int:
    """Forget what a service said of jobs that were deleted since."""
    gone = declarations.c.job_id.not_in(select(jobs.c.id))
    return conn.execute(delete(declarations).where(declarations.c.service == service, gone)).rowcount
