"""Jobs as people look for them: filtered pages, counts, and who depends on whom."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import structlog
from sqlalchemy import ColumnElement, Connection, Row, func, or_, select

from noonday.domain.errors import invalid
from noonday.domain.job import Job, JobId, JobState, Lane
from noonday.domain.search_values import Like
from noonday.domain.searching import Term
from noonday.store import dialects, search_sources
from noonday.store.keyset import Order, mark_of, sorted_by
from noonday.store.owners import owned_by
from noonday.store.pages import Mark, Page
from noonday.store.reading import RowError, as_id, may_be_id
from noonday.store.rows import job_from_row
from noonday.store.search_sql import conditions, tested
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
    service: str | None = None  # whose job it is
    ids: frozenset[str] | None = None
    terms: tuple[Term, ...] = ()  # of a search


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
    after: Mark | None = None,
    at_least: int | None = None,
) -> Page[Job]:
    """A page of jobs; `order` is one of ORDERS, with a minus for the reverse.

    It goes on after a mark, or by counting from the first. Rows that cannot be read are left out, with a line
    in the log. Of a search that is known to find `at_least` so many, nobody counts the others.
    """
    wanted = conditions_of(conn, filter)
    by = _order(order)
    # To sort whole rows takes five times as long as to sort their ids.
    query = sorted_by(conn, select(jobs.c.id).where(*wanted), by, after).limit(limit + 1).offset(offset)
    rows = conn.execute(query).all()
    ends = after is None and len(rows) <= limit and bool(rows or not offset)
    total = offset + len(rows) if ends else at_least or _count(conn, wanted)
    return Page(
        items=tuple(_readable(_in_order(conn, [row.id for row in rows[:limit]]))),
        total=total,
        limit=limit,
        offset=offset,
        next=mark_of(rows, limit, by),
        least=not ends and at_least is not None,
    )


def _in_order(conn: Connection, ids: Sequence[str]) -> Iterator[Row[Any]]:
    query = select(jobs).where(dialects.of(conn).among(jobs.c.id, ids))
    found = {row.id: row for row in conn.execute(query)}
    yield from (found[one] for one in ids if one in found)


def named(conn: Connection, filter: JobFilter, limit: int, after: str = "") -> dict[JobId, str]:
    """The names of jobs by their id, oldest first, from after an id on; readable or not."""
    wanted = conditions_of(conn, filter)
    if after:
        wanted.append(jobs.c.id > after)
    query = select(jobs.c.id, jobs.c.name).where(*wanted).order_by(jobs.c.id).limit(limit)
    return {JobId(job_id): name or job_id for job_id, name in conn.execute(query)}


def some(conn: Connection, filter: JobFilter, most: int) -> tuple[JobFilter, bool]:
    """The same jobs by their ids, at most so many of them, found by one look; and whether these are all."""
    query = select(jobs.c.id).where(*conditions_of(conn, filter)).limit(most + 1)
    found = conn.execute(query).scalars().all()
    return JobFilter(ids=frozenset(found[:most])), len(found) <= most


def count(conn: Connection, filter: JobFilter) -> int:
    return _count(conn, conditions_of(conn, filter))


def _count(conn: Connection, wanted: Sequence[ColumnElement[bool]]) -> int:
    return int(conn.execute(select(func.count()).select_from(jobs).where(*wanted)).scalar_one())


def _readable(rows: Iterable[Row[Any]]) -> Iterable[Job]:
    for row in rows:
        try:
            yield job_from_row(row._mapping)
        except RowError as exc:
            log.warning("a job's row cannot be read", job_id=row.id, error=str(exc), action="find jobs")


def _order(order: str) -> Order:
    column = _ORDERS.get(order.removeprefix("-"))
    if column is None:
        raise invalid("order", order, f"is not one of {', '.join(ORDERS)}")
    return Order(name=order, column=column, id=jobs.c.id)


def conditions_of(conn: Connection, wanted: JobFilter) -> list[ColumnElement[bool]]:
    ask = dialects.of(conn)
    plain: tuple[tuple[Any, Callable[[Any], ColumnElement[bool]]], ...] = (
        (wanted.status, lambda state: jobs.c.status == state.value),
        (wanted.priority, lambda lane: jobs.c.priority == lane.value),
        (wanted.tag, lambda tag: ask.has_item(jobs.c.tags, tag)),
        (wanted.name, lambda part: tested(jobs.c.name, Like(("", part, "")))),
        (wanted.schedule_type, lambda kind: jobs.c.schedule_type == kind),
        (wanted.source_id, lambda source: jobs.c.source_id == source),
        (wanted.enabled, lambda enabled: jobs.c.schedule_enabled == enabled),
        (wanted.service, lambda service: owned_by(conn, service)),
        (wanted.ids, lambda ids: ask.among(jobs.c.id, [one for one in ids if may_be_id(conn, one)])),
    )
    made = [condition(value) for value, condition in plain if value is not None]
    return made + conditions(conn, wanted.terms, search_sources.JOBS)


def count_by_state(conn: Connection) -> dict[JobState, int]:
    counted = conn.execute(select(jobs.c.status, func.count()).group_by(jobs.c.status)).all()
    states = {state.value: state for state in JobState}
    return {states[status]: count for status, count in counted if status in states}


def ids_of(conn: Connection, references: Collection[str]) -> dict[str, JobId]:
    """The jobs that these ids and names mean, in one look; by id, else by name. Unknown ones are left out."""
    dialect = dialects.of(conn)
    as_ids = {one: as_id(conn, one) for one in references}
    possible = [job_id for job_id in as_ids.values() if job_id is not None]
    meant = or_(dialect.among(jobs.c.id, possible), dialect.among(jobs.c.name, references))
    rows = conn.execute(select(jobs.c.id, jobs.c.name).where(meant)).all()
    ids, names = {row.id for row in rows}, {row.name: row.id for row in rows}
    found = {one: job_id if job_id in ids else names.get(one) for one, job_id in as_ids.items()}
    return {one: JobId(job_id) for one, job_id in found.items() if job_id is not None}


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
