"""The jobs that will fire before an instant, and what keeps some of them where they are."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from datetime import datetime
from typing import Any, Final
from weakref import WeakKeyDictionary

import structlog
from sqlalchemy import Connection, Engine, Row, RowMapping, Select, func, or_, select

from noonday.domain.job import Job, JobId, JobState
from noonday.domain.schedule import Timing
from noonday.domain.upcoming import Timed
from noonday.ids import first_id
from noonday.store import dialects
from noonday.store.owners import owned_by
from noonday.store.reading import RowError
from noonday.store.rows import job_from_row
from noonday.store.tables import ARMED, audit, job_dependencies, jobs
from noonday.store.timing_rows import TIMING_COLUMNS, timing_from_row

log = structlog.get_logger(__name__)

MOST: Final = 10_000  # jobs of one look
MOVED: Final = "rebalance"  # the action in the audit trail
_CURSORS: Final = tuple(
    jobs.c[name] for name in ("id", "revision", "updated_at", "next_run_at", "skipped_through", "fire_count")
)
_TIMING: Final = tuple(jobs.c[name] for name in TIMING_COLUMNS)
_ARMED: Final = (ARMED, jobs.c.status != JobState.CANCELLED.value)
_NOTHING: Final = (0, None, None)
_Timings = dict[str, tuple[int, datetime | None, Timing | None]]
_timings: WeakKeyDictionary[Engine, _Timings] = WeakKeyDictionary()


def firing_until(conn: Connection, until: datetime, service: str | None = None) -> tuple[list[Job], bool]:
    """Those that fire first, at most MOST; and whether there are more."""
    rows = conn.execute(_firing(conn, select(jobs), until, service)).mappings().all()
    return _readable(rows[:MOST]), len(rows) > MOST


def timed_until(conn: Connection, until: datetime, service: str | None = None) -> tuple[list[Timed], bool]:
    """The same jobs with nothing but their times."""
    rows = conn.execute(_firing(conn, select(*_CURSORS), until, service)).all()
    return _timed(conn, rows[:MOST]), len(rows) > MOST


def timed(conn: Connection, ids: Collection[JobId]) -> dict[JobId, Timed]:
    """Those of these jobs that will fire."""
    query = select(*_CURSORS).where(*_ARMED, dialects.of(conn).among(jobs.c.id, ids))
    return {one.id: one for one in _timed(conn, conn.execute(query).all())}


def whole(conn: Connection, ids: Collection[JobId]) -> dict[JobId, Job]:
    """These jobs with everything."""
    query = select(jobs).where(dialects.of(conn).among(jobs.c.id, ids))
    return {job.id: job for job in _readable(conn.execute(query).mappings().all())}


def _timed(conn: Connection, rows: Sequence[Row[Any]]) -> list[Timed]:
    """Timings are kept in memory by revision."""
    kept = _timings.setdefault(conn.engine, {})
    if len(kept) > 2 * MOST:
        kept.clear()
    known = {row.id: kept.get(row.id, _NOTHING) for row in rows}
    changed = [row.id for row in rows if known[row.id][:2] != (row.revision, row.updated_at)]
    if changed:
        query = select(*_CURSORS, *_TIMING).where(dialects.of(conn).among(jobs.c.id, changed))
        for full in conn.execute(query).mappings().all():
            known[full["id"]] = kept[full["id"]] = (full["revision"], full["updated_at"], _timing(full))
    return [
        Timed(
            id=JobId(row.id),
            timing=timing,
            next_run_at=row.next_run_at,
            skipped_through=row.skipped_through,
            fire_count=row.fire_count,
        )
        for row in rows
        if (timing := known[row.id][2]) is not None
    ]


def state_of(conn: Connection) -> Hashable:
    """Differs after any change of any job: one is made, changed, paused or deleted. Told by indexes alone."""
    newest = select(func.max(jobs.c.updated_at)).scalar_subquery()
    revised = select(func.sum(jobs.c.revision)).where(jobs.c.updated_at == newest).scalar_subquery()
    query = select(select(func.count()).select_from(jobs).scalar_subquery(), newest, revised)
    return tuple(conn.execute(query).one())


def limited(conn: Connection, most: int, service: str | None = None) -> tuple[list[Job], bool]:
    """Jobs with windows or a calendar, by name, at most so many; and whether there are more."""
    query = select(jobs).where(or_(jobs.c.windows.is_not(None), jobs.c.calendar.is_not(None)))
    if service is not None:
        query = query.where(owned_by(conn, service))
    rows = conn.execute(query.order_by(jobs.c.name, jobs.c.id).limit(most + 1)).mappings().all()
    return [job for job in _readable(rows[:most]) if job.timing.availability.limited], len(rows) > most


def _firing(conn: Connection, query: Select[Any], until: datetime, service: str | None) -> Select[Any]:
    query = query.where(*_ARMED, jobs.c.next_run_at <= until)
    if service is not None:
        query = query.where(owned_by(conn, service))
    return query.order_by(jobs.c.next_run_at, jobs.c.id).limit(MOST + 1)


def _timing(row: RowMapping) -> Timing | None:
    try:
        return timing_from_row(row)
    except RowError as exc:
        log.warning("a job's row cannot be read", job_id=row["id"], error=str(exc), action="forecast")
        return None


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
