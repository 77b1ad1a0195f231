"""Jobs as people look for them: filtered pages, counts, and who depends on whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sqlalchemy import ColumnElement, Connection, Select, func, select

from noonday.domain.job import Job, JobId, JobState, Lane
from noonday.store import dialects
from noonday.store.pages import Page
from noonday.store.reading import RowError, may_be_id
from noonday.store.rows import job_from_row
from noonday.store.tables import job_dependencies, jobs

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Only jobs for which all that is given holds; `name` is a part of the name in any case."""

    status: JobState | None = None
    priority: Lane | None = None
    tag: str | None = None
    name: str | None = None
    schedule_type: str | None = None
    source_id: str | None = None
    enabled: bool | None = None


EVERY: Final = JobFilter()
# Ids sort by creation and have an index, so a list by age costs its page and no more.
_ORDERS: Final[dict[str, ColumnElement[Any]]] = {
    "created_at": jobs.c.id,
    "name": jobs.c.name,
    "next_run_at": jobs.c.next_run_at,
    "last_run_at": jobs.c.last_run_at,
    "updated_at": jobs.c.updated_at,
    "status": jobs.c.status,
    "priority": jobs.c.priority,
}
ORDERS: Final = tuple(_ORDERS)


def find(
    conn: Connection,
    filter: JobFilter = EVERY,
    limit: int = 50,
    offset: int = 0,
    order: str = "-created_at",
) -> Page[Job]:
    """A page of jobs; `order` is one of ORDERS, with a minus for the reverse.

    Rows that cannot be read are left out, with a line in the log.
    """
    total = conn.execute(_filtered(conn, select(func.count()).select_from(jobs), filter)).scalar_one()
    query = _filtered(conn, select(jobs), filter).order_by(*_order(order)).limit(limit).offset(offset)
    return Page(items=tuple(_readable(conn, query)), total=total, limit=limit, offset=offset)


def _readable(conn: Connection, query: Select[Any]) -> Iterable[Job]:
    for row in conn.execute(query).mappings():
        try:
            yield job_from_row(row)
        except RowError as exc:
            log.warning("a job's row cannot be read", job_id=row["id"], error=str(exc), action="find jobs")


def _order(order: str) -> tuple[ColumnElement[Any], ...]:
    column = _ORDERS[order.removeprefix("-")]
    if order.startswith("-"):
        return column.desc().nulls_last(), jobs.c.id.desc()
    return column.asc().nulls_last(), jobs.c.id.asc()


def _filtered(conn: Connection, query: Select[Any], wanted: JobFilter) -> Select[Any]:
    if wanted.status is not None:
        query = query.where(jobs.c.status == wanted.status.value)
    if wanted.priority is not None:
        query = query.where(jobs.c.priority == wanted.priority.value)
    if wanted.tag is not None:
        query = query.where(dialects.of(conn).has_item(jobs.c.tags, wanted.tag))
    if wanted.name is not None:
        query = query.where(func.lower(jobs.c.name).contains(wanted.name.lower(), autoescape=True))
    if wanted.schedule_type is not None:
        query = query.where(jobs.c.schedule_type == wanted.schedule_type)
    if wanted.source_id is not None:
        query = query.where(jobs.c.source_id == wanted.source_id)
    if wanted.enabled is not None:
        query = query.where(jobs.c.schedule_enabled == wanted.enabled)
    return query


def count_by_state(conn: Connection) -> dict[JobState, int]:
    counted = conn.execute(select(jobs.c.status, func.count()).group_by(jobs.c.status)).all()
    states = {state.value: state for state in JobState}
    return {states[status]: count for status, count in counted if status in states}


def known(conn: Connection, ids: Collection[str]) -> set[JobId]:
    """Those of the ids that are jobs."""
    possible = [job_id for job_id in ids if may_be_id(conn, job_id)]
    query = select(jobs.c.id).where(dialects.of(conn).among(jobs.c.id, possible))
    return {JobId(found) for found in conn.execute(query).scalars()}


def edges_above(conn: Connection, ids: Collection[JobId]) -> dict[JobId, tuple[JobId, ...]]:
    """The parents, of both kinds, of these jobs and of all jobs above them."""
    edges: dict[JobId, tuple[JobId, ...]] = {}
    level = set(ids)
    while level:
        query = select(job_dependencies.c.job_id, job_dependencies.c.parent_id).where(
            dialects.of(conn).among(job_dependencies.c.job_id, level)
        )
        for job_id, parent_id in conn.execute(query):
            edges[JobId(job_id)] = (*edges.get(JobId(job_id), ()), JobId(parent_id))
        level = {parent for job in level for parent in edges.get(job, ())} - edges.keys()
    return edges
