"""What services last said of their jobs."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, delete, insert, or_, select, update

from noonday.domain.job import JobId
from noonday.store import dialects
from noonday.store.front_tables import declarations
from noonday.store.owners import owner
from noonday.store.tables import jobs

__all__ = ["Declared", "beside", "clear", "get", "lock_all", "owners", "put"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    job_id: JobId
    service: str
    body: Mapping[str, Any]
    declared_at: datetime


def get(conn: Connection, job_id: JobId) -> Declared | None:
    row = conn.execute(select(declarations).where(declarations.c.job_id == job_id)).mappings().first()
    return None if row is None else Declared(**row)


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


def lock_all(conn: Connection, service: str, names: Collection[str]) -> None:
    """The service's jobs and those of these names, in an order that is the same for everybody."""
    own = select(declarations.c.job_id).where(declarations.c.service == service)
    wanted = or_(dialects.of(conn).among(jobs.c.name, names), jobs.c.id.in_(own))
    conn.execute(dialects.of(conn).locked(select(jobs.c.id).where(wanted).order_by(jobs.c.id), jobs))


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
