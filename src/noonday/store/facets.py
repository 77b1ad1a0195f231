"""How many of the jobs that a search finds are of each state, type, service, tag and priority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, func, select

from noonday.store.job_search import JobFilter, conditions_of
from noonday.store.owners import owner
from noonday.store.tables import jobs

FIELDS: Final = ("status", "type", "service", "tag", "priority")  # as a search calls them
_MOST: Final = 20_000  # combinations that one look counts

Facets = Mapping[str, Mapping[str, int]]


def facets(conn: Connection, wanted: JobFilter) -> Facets:
    """By field and value. Each field is counted as if the search did not name it: others can be chosen."""
    named = {term.field for term in wanted.terms if not term.negated}
    shared = _rows(conn, wanted)
    found: dict[str, Mapping[str, int]] = {}
    for field in FIELDS:
        rows = shared
        if field in named:
            others = tuple(term for term in wanted.terms if term.negated or term.field != field)
            rows = _rows(conn, replace(wanted, terms=others))
        found[field] = _counted(field, rows)
    return found


def _rows(conn: Connection, wanted: JobFilter) -> list[Row[Any]]:
    """Jobs are much alike: there are far fewer combinations than jobs."""
    columns = (
        jobs.c.status,
        jobs.c.schedule_type.label("type"),
        owner(conn).label("service"),
        jobs.c.tags.label("tag"),
        jobs.c.priority,
    )
    inner = select(*columns).where(*conditions_of(conn, wanted)).subquery()
    query = select(*inner.c, func.count().label("jobs")).group_by(*inner.c)
    found: Sequence[Any] = conn.execute(query.limit(_MOST)).all()
    return list(found)


def _counted(field: str, rows: list[Row[Any]]) -> Mapping[str, int]:
    found: Counter[str] = Counter()
    for row in rows:
        for value in _values(getattr(row, field)):
            found[value] += row.jobs
    return found


def _values(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield from {item for item in value if isinstance(item, str)}
    elif isinstance(value, str | int):
        yield str(value)
