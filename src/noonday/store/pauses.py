"""Pauses that end by themselves: whose time has come, and when the next one ends."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sqlalchemy import Connection, select
from sqlalchemy import text as sql

from noonday.domain.job import Job
from noonday.store import dialects
from noonday.store.definitions import KEPT, jobs_of
from noonday.store.tables import CLEAN, jobs

# Written out, as in `tables`: so both databases see that the partial index will do.
_ENDING: Final = sql("jobs.paused_until IS NOT NULL")


def over(conn: Connection, now: datetime, limit: int = 200) -> list[Job]:
    """Paused jobs whose pause has ended by now, locked, the earliest first."""
    query = (
        select(*KEPT)
        .where(_ENDING, jobs.c.paused_until <= now, jobs.c.is_paused, CLEAN)
        .order_by(jobs.c.paused_until)
        .limit(limit)
    )
    rows = conn.execute(dialects.of(conn).skip_locked(query, jobs)).mappings().all()
    found = jobs_of(conn, rows)
    return [job for row in rows if isinstance(job := found[row["id"]], Job)]


def next_end(conn: Connection) -> datetime | None:
    query = select(jobs.c.paused_until).where(_ENDING, jobs.c.is_paused, CLEAN)
    found: datetime | None = conn.execute(query.order_by(jobs.c.paused_until).limit(1)).scalar()
    return found
