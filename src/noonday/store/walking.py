"""A walk over all jobs by id, window by window: nobody waits while a million of them are looked at."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, select

from noonday.store.tables import jobs

__all__ = ["window"]


def window(conn: Connection, after: str | None, size: int) -> tuple[list[ColumnElement[bool]], str | None]:
    """What holds for the next `size` jobs, and where they end; None of the last ones."""
    beyond = [] if after is None else [jobs.c.id > after]
    end = select(jobs.c.id).where(*beyond).order_by(jobs.c.id).offset(size - 1).limit(1)
    last: str | None = conn.execute(end).scalar()
    return (beyond if last is None else [*beyond, jobs.c.id <= last]), last
