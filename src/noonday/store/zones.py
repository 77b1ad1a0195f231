"""Which time zones the jobs use, what their rules were, and the jobs of one zone."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import Connection, select

from noonday.domain.job import Job
from noonday.store import dialects, meta
from noonday.store.definitions import KEPT, jobs_of
from noonday.store.tables import ARMED, CLEAN, jobs

_MARK = "zone:"


def in_use(conn: Connection) -> list[str]:
    """All zones but UTC, whose rules never change."""
    query = select(jobs.c.timezone).where(jobs.c.timezone != "UTC").distinct()
    return sorted(conn.execute(query).scalars())


def mark(conn: Connection, zone: str) -> str | None:
    return meta.get(conn, _MARK + zone)


def set_mark(conn: Connection, zone: str, value: str) -> None:
    meta.put(conn, _MARK + zone, value)


def waiting(conn: Connection, zone: str, after: datetime, beyond: str, limit: int) -> list[Job]:
    """Armed jobs of the zone whose next time is still ahead, locked, by id from `beyond` on."""
    query = (
        select(*KEPT)
        .where(ARMED, CLEAN, jobs.c.timezone == zone, jobs.c.next_run_at > after, jobs.c.id > beyond)
        .order_by(jobs.c.id)
        .limit(limit)
    )
    rows = conn.execute(dialects.of(conn).locked(query, jobs)).mappings().all()
    found = jobs_of(conn, rows)
    return [job for row in rows if isinstance(job := found[row["id"]], Job)]
