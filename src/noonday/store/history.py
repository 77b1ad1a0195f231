"""What happened: pages of executions and their attempts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, func, select

from noonday.domain.execution import Attempt, Execution, ExecutionState, successful_attempt
from noonday.domain.searching import Term
from noonday.store import search_sources
from noonday.store.execution_rows import COLUMNS, read_attempt, read_execution
from noonday.store.keyset import Order, mark_of, sorted_by
from noonday.store.owners import owned_by
from noonday.store.pages import Mark, Page
from noonday.store.pruning import prune
from noonday.store.reading import may_be_id
from noonday.store.search_sql import conditions
from noonday.store.tables import attempts as attempts_table
from noonday.store.tables import executions, jobs

__all__ = ["PLANNED", "ExecutionFilter", "attempts", "conditions_of", "find", "page", "prune"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFilter:
    """Only executions for which all that is given holds; `service` owns their job."""

    job_id: str | None = None
    status: ExecutionState | None = None
    service: str | None = None
    terms: tuple[Term, ...] = ()  # of a search


PLANNED: Final = Order(name="-created_at", column=executions.c.id, id=executions.c.id)
_DUE: Final = Order(name="-scheduled_for", column=executions.c.scheduled_for, id=executions.c.id)


def page(
    conn: Connection,
    job_id: str | None = None,
    limit: int = 50,
    offset: int = 0,
    status: ExecutionState | str | None = None,
) -> Page[Execution]:
    state = None if status is None else ExecutionState(status)
    return find(conn, ExecutionFilter(job_id=job_id, status=state), limit, offset)


def find(
    conn: Connection, wanted: ExecutionFilter, limit: int = 50, offset: int = 0, after: Mark | None = None
) -> Page[Execution]:
    """Newest first: of a job by the time it was due, of all by the time it was planned."""
    if wanted.job_id is not None and not may_be_id(conn, wanted.job_id):
        return Page(items=(), total=0, limit=limit, offset=offset)
    asked = conditions_of(conn, wanted)
    order = PLANNED if wanted.job_id is None else _DUE
    query = sorted_by(conn, select(*COLUMNS).where(*asked), order, after).limit(limit + 1).offset(offset)
    total = select(func.count()).select_from(executions).where(*asked)
    rows = conn.execute(query).all()
    return Page(
        items=tuple(read_execution(row) for row in rows[:limit]),
        total=conn.execute(total).scalar_one(),
        limit=limit,
        offset=offset,
        next=mark_of(rows, limit, order),
    )


def conditions_of(conn: Connection, wanted: ExecutionFilter) -> list[ColumnElement[bool]]:
    made: list[ColumnElement[bool]] = []
    if wanted.job_id is not None:
        made.append(executions.c.job_id == wanted.job_id)
    if wanted.status is not None:
        made.append(executions.c.state == wanted.status.value)
    if wanted.service is not None:
        made.append(executions.c.job_id.in_(select(jobs.c.id).where(owned_by(conn, wanted.service))))
    return made + conditions(conn, wanted.terms, search_sources.EXECUTIONS)


def attempts(conn: Connection, execution_id: str) -> list[Attempt]:
    """In order. The one that succeeded is told by the row of its execution and not kept apart."""
    if not may_be_id(conn, execution_id):
        return []
    query = select(attempts_table).where(attempts_table.c.execution_id == execution_id)
    found = [read_attempt(row) for row in conn.execute(query.order_by(attempts_table.c.number)).mappings()]
    row = conn.execute(select(*COLUMNS).where(executions.c.id == execution_id)).first()
    success = None if row is None else successful_attempt(read_execution(row))
    if success is None or any(one.number == success.number for one in found):
        return found
    return [*found, success]
