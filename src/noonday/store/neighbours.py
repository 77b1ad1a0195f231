"""The jobs around a job: those it waits for or follows, and those that wait for it, however far away."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Column, Connection, select

from noonday.domain.job import JobId
from noonday.store import dialects
from noonday.store.owners import owned_by
from noonday.store.tables import job_dependencies, jobs

__all__ = ["Edge", "Neighbour", "around", "known"]

MOST: Final = 60  # jobs of one picture
_MOST_EDGES: Final = 400  # of one step


@dataclass(frozen=True, slots=True)
class Edge:
    parent: JobId
    child: JobId
    kind: str  # depends_on or on_success_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    id: JobId
    name: str
    state: str
    last_status: str | None


def around(conn: Connection, job_id: JobId) -> tuple[list[Edge], bool]:
    """The edges of the picture, and whether there are more jobs than it has room for."""
    seen: set[JobId] = {job_id}
    found: dict[Edge, None] = {}
    more = False
    ways = ((job_dependencies.c.job_id, "parent"), (job_dependencies.c.parent_id, "child"))
    for column, far in ways:
        level = {job_id}
        while level:
            edges = _edges(conn, column, level)
            more |= len(edges) == _MOST_EDGES
            level = set()
            for edge in edges:
                end: JobId = getattr(edge, far)
                if end not in seen and len(seen) >= MOST:
                    more = True
                    continue
                if end not in seen:
                    level.add(end)
                    seen.add(end)
                found[edge] = None
    return list(found), more


def known(conn: Connection, ids: Collection[JobId], service: str | None) -> dict[JobId, Neighbour]:
    """What a reader may know of these; a caller of a service sees its own alone."""
    columns = (jobs.c.id, jobs.c.name, jobs.c.status, jobs.c.last_status)
    query = select(*columns).where(dialects.of(conn).among(jobs.c.id, list(ids)))
    if service is not None:
        query = query.where(owned_by(conn, service))
    return {
        JobId(row.id): Neighbour(
            id=JobId(row.id), name=row.name or row.id, state=row.status, last_status=row.last_status
        )
        for row in conn.execute(query)
    }


def _edges(conn: Connection, column: Column[str], ids: Collection[JobId]) -> list[Edge]:
    query = select(job_dependencies).where(dialects.of(conn).among(column, list(ids)))
    ordered = query.order_by(job_dependencies.c.parent_id, job_dependencies.c.job_id).limit(_MOST_EDGES)
    return [Edge(JobId(row.parent_id), JobId(row.job_id), row.kind) for row in conn.execute(ordered)]
