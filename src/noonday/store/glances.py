"""The newest executions at a glance: a page of them, whose they are, and what else a search could choose.

However long the history is, one glance looks at a stretch of it; the next one goes on where it ended.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, and_, case, func, select, true

from noonday.domain.execution import OPEN as OPEN_STATES
from noonday.domain.execution import Execution
from noonday.domain.search_values import Is
from noonday.domain.searching import Term
from noonday.store import dialects, search_sources
from noonday.store.execution_rows import COLUMNS, read_execution
from noonday.store.facets import Facets, counted
from noonday.store.history import PLANNED, ExecutionFilter, conditions_of
from noonday.store.keyset import mark_of, sorted_by
from noonday.store.owners import owner
from noonday.store.pages import Mark
from noonday.store.search_sql import Sources, any_of, conditions
from noonday.store.tables import OPEN, executions, jobs

__all__ = ["STRETCH", "Glance", "by_job", "glance"]

STRETCH: Final = 10_000  # executions
_MOST_JOBS: Final = 100  # for which their own executions are looked at, not everybody's
_OF_JOBS: Final[Sources] = {
    "job": any_of(search_sources.JOBS["name"], search_sources.JOBS["id"]),
    "tag": search_sources.JOBS["tag"],
    "service": search_sources.JOBS["service"],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Glance:
    """Counts are of the stretch; each facet counts as if the search did not name it."""

    items: tuple[Execution, ...]
    names: Mapping[str, str]  # of the jobs that are still there
    total: int
    all: int  # whatever was searched for
    states: Mapping[str, int]
    causes: Mapping[str, int]
    whole: bool  # the stretch reaches to the beginning of the history
    next: Mark | None


@dataclass(frozen=True, slots=True)
class _Stretch:
    jobs: list[ColumnElement[bool]]  # whose executions it is made of
    terms: tuple[Term, ...]  # of the search, that are not answered by that
    edge: Mark | None
    bounds: list[ColumnElement[bool]]


def glance(conn: Connection, wanted: ExecutionFilter, limit: int, after: Mark | None = None) -> Glance:
    """Newest first, by the time they were planned."""
    stretch = _stretch(conn, wanted.terms, after)
    rest = replace(wanted, terms=stretch.terms)
    open_ones = _are_open(rest.terms)  # few, however old, and found by an index of their own
    bounds = [*stretch.jobs, OPEN] if open_ones else stretch.bounds
    asked = select(*COLUMNS).where(*bounds, *conditions_of(conn, rest))
    rows = conn.execute(sorted_by(conn, asked, PLANNED, after).limit(limit + 1)).all()
    items = tuple(read_execution(row) for row in rows[:limit])
    seen = _counted(conn, stretch.bounds, rest)
    total = sum(runs for (_, _, by_state, by_cause), runs in seen.items() if by_state and by_cause)
    return Glance(
        items=items,
        names=_names(conn, {one.job_id for one in items}),
        total=max(total, len(items)),
        all=_all(conn, wanted, stretch),
        states=_summed((state, runs) for (state, _, _, by_cause), runs in seen.items() if by_cause),
        causes=_summed((cause, runs) for (_, cause, by_state, _), runs in seen.items() if by_state),
        whole=stretch.edge is None,
        next=mark_of(rows, limit, PLANNED) or (None if open_ones else stretch.edge),
    )


def _stretch(conn: Connection, terms: Sequence[Term], after: Mark | None) -> _Stretch:
    mine, rest = _of_jobs(conn, terms)
    edge = _edge(conn, mine, after)
    bounds = [*mine, *([] if edge is None else [executions.c.id >= edge.id])]
    if after is not None:
        bounds.append(executions.c.id < after.id)
    return _Stretch(mine, rest, edge, bounds)


def _of_jobs(conn: Connection, terms: Sequence[Term]) -> tuple[list[ColumnElement[bool]], tuple[Term, ...]]:
    """Words that choose a few jobs are answered from these jobs' own executions, which have an index."""
    of_jobs = [term for term in terms if term.field in _OF_JOBS and not term.negated]
    if not of_jobs:
        return [], tuple(terms)
    query = select(jobs.c.id).where(*conditions(conn, of_jobs, _OF_JOBS)).limit(_MOST_JOBS + 1)
    ids = conn.execute(query).scalars().all()
    if not 0 < len(ids) <= _MOST_JOBS:
        return [], tuple(terms)
    others = tuple(term for term in terms if term not in of_jobs)
    return [dialects.of(conn).among(executions.c.job_id, ids)], others


def _are_open(terms: Sequence[Term]) -> bool:
    """Are only states asked for that do not last?"""
    asked = [term.tests for term in terms if term.field == "status" and not term.negated]
    return any(all(isinstance(test, Is) and test.value in OPEN_STATES for test in tests) for tests in asked)


def _edge(conn: Connection, mine: Sequence[ColumnElement[bool]], after: Mark | None) -> Mark | None:
    """The last execution of the stretch; None if it is the last there is."""
    query = sorted_by(conn, select(executions.c.id).where(*mine), PLANNED, after)
    rows = conn.execute(query.offset(STRETCH - 1).limit(2)).all()
    return mark_of(rows, 1, PLANNED)


def _counted(
    conn: Connection, stretch: Sequence[ColumnElement[bool]], wanted: ExecutionFilter
) -> Counter[tuple[str, str, int, int]]:
    """By state, by cause, and by whether the words about states, and those about causes, hold."""

    def holds(field: str) -> ColumnElement[int]:
        about = [term for term in wanted.terms if term.field == field]
        held = and_(true(), *conditions(conn, about, search_sources.EXECUTIONS))
        return case((held, 1), else_=0)

    others = tuple(term for term in wanted.terms if term.field not in ("status", "cause"))
    rows = (
        select(
            executions.c.state,
            executions.c.cause,
            holds("status").label("by_state"),
            holds("cause").label("by_cause"),
        )
        .where(*stretch, *conditions_of(conn, replace(wanted, terms=others)))
        .subquery()
    )
    query = select(*rows.c, func.count()).group_by(*rows.c)
    return Counter({(row[0], row[1], row[2], row[3]): row[4] for row in conn.execute(query)})


def _all(conn: Connection, wanted: ExecutionFilter, stretch: _Stretch) -> int:
    own = conditions_of(conn, replace(wanted, terms=()))
    if stretch.edge is not None and not own:
        return STRETCH
    query = select(func.count()).select_from(executions).where(*stretch.bounds, *own)
    return int(conn.execute(query).scalar_one())


def by_job(conn: Connection, wanted: ExecutionFilter, after: Mark | None = None) -> Facets:
    """The executions of the stretch by the service and the tags of their jobs; counted as in a glance."""
    named = {term.field for term in wanted.terms if not term.negated}
    shared = _job_rows(conn, wanted, _stretch(conn, wanted.terms, after))
    found = {}
    for field in ("service", "tag"):
        rows = shared
        if field in named:
            others = tuple(term for term in wanted.terms if term.negated or term.field != field)
            rows = _job_rows(conn, wanted, _stretch(conn, others, after))
        found[field] = counted(field, rows)
    return found


def _job_rows(conn: Connection, wanted: ExecutionFilter, stretch: _Stretch) -> Sequence[Row[Any]]:
    held = conditions_of(conn, replace(wanted, terms=stretch.terms))
    # In the order of ids, and only so many: or else SQLite goes through the index of jobs, the whole history.
    newest = select(executions.c.job_id).where(*stretch.bounds, *held).order_by(executions.c.id.desc())
    seen = newest.limit(STRETCH).subquery()
    runs = select(seen.c.job_id, func.count().label("runs")).group_by(seen.c.job_id).subquery()
    mine = (
        select(owner(conn).label("service"), jobs.c.tags.label("tag"), runs.c.runs)
        .join_from(jobs, runs, runs.c.job_id == jobs.c.id)
        .subquery()
    )
    query = select(mine.c.service, mine.c.tag, func.sum(mine.c.runs).label("many"))
    found: Sequence[Any] = conn.execute(query.group_by(mine.c.service, mine.c.tag)).all()
    return found


def _summed(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    made: Counter[str] = Counter()
    for word, runs in pairs:
        made[word] += runs
    return dict(made)


def _names(conn: Connection, ids: set[str]) -> dict[str, str]:
    query = select(jobs.c.id, jobs.c.name).where(dialects.of(conn).among(jobs.c.id, ids))
    return {row.id: row.name for row in conn.execute(query)}
