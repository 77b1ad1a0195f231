"""How many of the jobs that a search finds are of each state, type, service, tag, priority, or due soon."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, case, func, select

from noonday.domain.searching import Term
from noonday.store import search_sources
from noonday.store.job_search import JobFilter, conditions_of
from noonday.store.owners import owner
from noonday.store.search_sql import conditions
from noonday.store.tables import jobs

FIELDS: Final = ("status", "type", "service", "tag", "priority")  # as a search calls them
SOON: Final = "next"
_MOST: Final = 20_000  # combinations that one look counts

Facets = Mapping[str, Mapping[str, int]]


def facets(conn: Connection, wanted: JobFilter, soon: Mapping[str, Term] | None = None) -> Facets:
    """By field and value; of the next run, by the names of the terms in `soon`, which may overlap.

    Each field is counted as if the search did not name it: others can be chosen.
    """
    dues = dict(soon or {})
    named = {term.field for term in wanted.terms if not term.negated}
    shared = _rows(conn, wanted, dues)
    found: dict[str, Mapping[str, int]] = {}
    for field in (*FIELDS, *([SOON] if dues else [])):
        rows = shared
        if field in named:
            others = tuple(term for term in wanted.terms if term.negated or term.field != field)
            rows = _rows(conn, replace(wanted, terms=others), dues)
        found[field] = _due(dues, rows) if field == SOON else counted(field, rows)
    return found


def _rows(conn: Connection, wanted: JobFilter, dues: Mapping[str, Term]) -> list[Row[Any]]:
    """Jobs are much alike: there are far fewer combinations than jobs."""
    columns = (
        jobs.c.status,
        jobs.c.schedule_type.label("type"),
        owner(conn).label("service"),
        jobs.c.tags.label("tag"),
        jobs.c.priority,
    )
    held = [and_(*conditions(conn, [term], search_sources.JOBS)) for term in dues.values()]
    flags = [case((one, 1), else_=0).label(f"due_{place}") for place, one in enumerate(held)]
    inner = select(*columns, *flags).where(*conditions_of(conn, wanted)).subquery()
    query = select(*inner.c, func.count().label("many")).group_by(*inner.c)
    found: Sequence[Any] = conn.execute(query.limit(_MOST)).all()
    return list(found)


def _due(dues: Mapping[str, Term], rows: list[Row[Any]]) -> Mapping[str, int]:
    return {
        name: sum(row.many for row in rows if getattr(row, f"due_{place}")) for place, name in enumerate(dues)
    }


def counted(field: str, rows: Sequence[Row[Any]]) -> Mapping[str, int]:
    """By the values of a field, from rows that say how `many` each stands for."""
    found: Counter[str] = Counter()
    for row in rows:
        for value in _values(getattr(row, field)):
            found[value] += row.many
    return found


def _values(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield from {item for item in value if isinstance(item, str)}
    elif isinstance(value, str | int):
        yield str(value)
