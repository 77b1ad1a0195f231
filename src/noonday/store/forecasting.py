"""The jobs that will fire before an instant, and what keeps some of them where they are."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import structlog
from sqlalchemy import Connection, RowMapping, or_, select

from noonday.domain.job import Job, JobId, JobState
from noonday.ids import first_id
from noonday.store.owners import owned_by
from noonday.store.reading import RowError
from noonday.store.rows import job_from_row
from noonday.store.tables import ARMED, audit, job_dependencies, jobs

log = structlog.get_logger(__name__)

MOST: Final = 10_000  # jobs of one look
MOVED: Final = "rebalance"  # the action in the audit trail


def firing_until(conn: Connection, until: datetime, service: str | None = None) -> tuple[list[Job], bool]:
    """Those that fire first, at most MOST; and whether there are more."""
    query = select(jobs).where(ARMED, jobs.c.status != JobState.CANCELLED.value, jobs.c.next_run_at <= until)
    if service is not None:
        query = query.where(owned_by(conn, service))
    rows = conn.execute(query.order_by(jobs.c.next_run_at, jobs.c.id).limit(MOST + 1)).mappings().all()
    return _readable(rows[:MOST]), len(rows) > MOST


def limited(conn: Connection, most: int, service: str | None = None) -> tuple[list[Job], bool]:
    """Jobs with windows or a calendar, by name, at most so many; and whether there are more."""
    query = select(jobs).where(or_(jobs.c.windows.is_not(None), jobs.c.calendar.is_not(None)))
    if service is not None:
        query = query.where(owned_by(conn, service))
    rows = conn.execute(query.order_by(jobs.c.name, jobs.c.id).limit(most + 1)).mappings().all()
    return [job for job in _readable(rows[:most]) if job.timing.availability.limited], len(rows) > most


def _readable(rows: Iterable[RowMapping]) -> list[Job]:
    found: list[Job] = []
    for row in rows:
        try:
            found.append(job_from_row(row))
        except RowError as exc:
            log.warning("a job's row cannot be read", job_id=row["id"], error=str(exc), action="forecast")
    return found


def needed_by_others(conn: Connection) -> set[JobId]:
    """Jobs that another one waits for, or follows."""
    return {JobId(found) for found in conn.execute(select(job_dependencies.c.parent_id).distinct()).scalars()}


def moved_since(conn: Connection, since: datetime) -> set[JobId]:
    """Jobs that a rebalancing has moved."""
    query = select(audit.c.subject_id).where(audit.c.id >= first_id(since), audit.c.action == MOVED)
    return {JobId(found) for found in conn.execute(query).scalars()}
