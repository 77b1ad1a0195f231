"""Pauses that end by themselves: whose time has come, and when the next one ends."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Integer, Select, bindparam, select
from sqlalchemy import text as sql

from noonday.domain.job import Job
from noonday.store.columns import Instant
from noonday.store.definitions import KEPT, readable_jobs
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared
from noonday.store.tables import CLEAN, jobs

# Written out, as in `tables`: so both databases see that the partial index will do.
_ENDING: Final = sql("jobs.paused_until IS NOT NULL")


def over(conn: Connection, now: datetime, limit: int = 200) -> list[Job]:
    """Paused jobs whose pause has ended by now, locked, the earliest first."""
    rows = _over(conn, now=now, count=limit).all()
    return list(readable_jobs(conn, rows).values())


@prepared
def _over(dialect: Answers) -> Select[Any]:
    ended = jobs.c.paused_until <= bindparam("now", type_=Instant)
    query = select(*KEPT).where(_ENDING, ended, jobs.c.is_paused, CLEAN)
    query = query.order_by(jobs.c.paused_until).limit(bindparam("count", type_=Integer))
    return dialect.skip_locked(query, jobs)


def next_end(conn: Connection) -> datetime | None:
    found: datetime | None = _next_end(conn).scalar()
    return found


@prepared
def _next_end(_: Answers) -> Select[Any]:
    query = select(jobs.c.paused_until).where(_ENDING, jobs.c.is_paused, CLEAN)
    return query.order_by(jobs.c.paused_until).limit(1)
