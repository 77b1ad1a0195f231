"""How many of the jobs that a search finds are of each state, type, service, tag, priority, or due soon.

However many there are, one look counts a stretch of them: beyond that it says "at least".
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
STRETCH: Final = 10_000  # jobs that are counted; those made last, unless others were found already

Facets = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """`least` names the fields of which more jobs were found than the stretch that was counted."""

    facets: Facets
    least: frozenset[str]
    stretch: int


@dataclass(frozen=True, slots=True)
class _Seen:
    rows: Sequence[Row[Any]]
    whole: bool


def facets(
    conn: Connection,
    wanted: JobFilter,
    soon: Mapping[str, Term] | None = None,
    stretch: JobFilter | None = None,
) -> Counted:
    """By field and value; of the next run, by the names of the terms in `soon`, which may overlap.

    Each field is counted as if the search did not name it: others can be chosen. `stretch` is known to be
    what the whole search finds, or as much of it as is counted.
    """
    dues = dict(soon or {})
    named = {term.field for term in wanted.terms if not term.negated}
    shared = _look(conn, stretch or wanted, dues)
    found: dict[str, Mapping[str, int]] = {}
    least = set()
    for field in (*FIELDS, *([SOON] if dues else [])):
        seen = shared
        if field in named:
            others = tuple(term for term in wanted.terms if term.negated or term.field != field)
            seen = _look(conn, replace(wanted, terms=others), dues)
        found[field] = _due(dues, seen.rows) if field == SOON else counted(field, seen.rows)
        if not seen.whole:
            least.add(field)
    return Counted(facets=found, least=frozenset(least), stretch=STRETCH)


def _look(conn: Connection, wanted: JobFilter, dues: Mapping[str, Term]) -> _Seen:
    """Jobs are much alike: there are far fewer combinations than jobs."""
    stretch = select(jobs.c.id).where(*conditions_of(conn, wanted)).order_by(jobs.c.id.desc()).limit(STRETCH)
    columns = (
        jobs.c.status,
        jobs.c.schedule_type.label("type"),
        owner(conn).label("service"),
        jobs.c.tags.label("tag"),
        jobs.c.priority,
    )
    held = [and_(*conditions(conn, [term], search_sources.JOBS)) for term in dues.values()]
    flags = [case((one, 1), else_=0).label(f"due_{place}") for place, one in enumerate(held)]
    inner = select(*columns, *flags).where(jobs.c.id.in_(stretch)).subquery()
    query = select(*inner.c, func.count().label("many")).group_by(*inner.c)
    rows: Sequence[Any] = conn.execute(query).all()
    return _Seen(rows, sum(row.many for row in rows) < STRETCH)


def _due(dues: Mapping[str, Term], rows: Sequence[Row[Any]]) -> Mapping[str, int]:
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
