"""Whose a job is: the service that declared it, or else the service that its target names."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, func, select

from noonday.store import dialects
from noonday.store.front_tables import declarations
from noonday.store.reading import may_be_id
from noonday.store.tables import executions, jobs


def owner(conn: Connection) -> ColumnElement[str]:
    """The name of the service, for a query over `jobs`; NULL for a job of nobody in particular."""
    declared = select(declarations.c.service).where(declarations.c.job_id == jobs.c.id).scalar_subquery()
    return func.coalesce(declared, _named_by_target(conn))


def owned_by(conn: Connection, service: str) -> ColumnElement[bool]:
    """As `owner(conn) == service`."""
    return owner(conn) == service


def _named_by_target(conn: Connection) -> ColumnElement[str]:
    return dialects.of(conn).text_of(jobs.c.target, "service")


def of_job(conn: Connection, id_or_name: str) -> str | None:
    """Of the job with that id, else with that name; None also for a job that does not exist."""
    query = select(jobs.c.id, owner(conn))
    found = None
    if may_be_id(conn, id_or_name):
        found = conn.execute(query.where(jobs.c.id == id_or_name)).first()
    if found is None:
        found = conn.execute(query.where(jobs.c.name == id_or_name)).first()
    return None if found is None else found[1]


def of_execution(conn: Connection, execution_id: str) -> str | None:
    """None also for an execution that does not exist."""
    if not may_be_id(conn, execution_id):
        return None
    query = select(owner(conn)).join(executions, executions.c.job_id == jobs.c.id)
    found: str | None = conn.execute(query.where(executions.c.id == execution_id)).scalar()
    return found
