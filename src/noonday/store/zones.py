"""Which time zones the jobs use, what their rules were, and the jobs of one zone."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Select, func, select

from noonday.domain.job import Job
from noonday.store import dialects, meta
from noonday.store.definitions import KEPT, readable_jobs
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared
from noonday.store.tables import ARMED, CLEAN, ZONED, jobs

_MARK: Final = "zone:"


def in_use(conn: Connection) -> list[str]:
    """All zones but UTC, whose rules never change: one step in the index for each, not for each job."""
    return list(_in_use(conn).scalars())


@prepared
def _in_use(_: Answers) -> Select[Any]:
    lowest = select(func.min(jobs.c.timezone)).where(ZONED)
    found = lowest.cte("found", recursive=True)
    before = found.c[0]
    further = lowest.where(jobs.c.timezone > before).scalar_subquery()
    walk = found.union_all(select(further).where(before.is_not(None)))
    return select(walk.c[0]).where(walk.c[0].is_not(None))


def mark(conn: Connection, zone: str) -> str | None:
    return meta.get(conn, _MARK + zone)


def set_mark(conn: Connection, zone: str, value: str) -> None:
    meta.put(conn, _MARK + zone, value)


def waiting(conn: Connection, zone: str, after: datetime, beyond: str, limit: int) -> list[Job]:
    """Armed jobs of the zone whose next time is still ahead, locked, by id from `beyond` on."""
    query = (
        select(*KEPT)
        .where(ARMED, CLEAN, ZONED, jobs.c.timezone == zone, jobs.c.next_run_at > after, jobs.c.id > beyond)
        .order_by(jobs.c.id)
        .limit(limit)
    )
    rows = conn.execute(dialects.of(conn).locked(query, jobs)).all()
    return list(readable_jobs(conn, rows).values())
