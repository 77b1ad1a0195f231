"""What was due lately, by ten minutes and by what became of it; and the jobs that tell what will be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import structlog
from sqlalchemy import Connection, RowMapping, Text, case, func, select
from sqlalchemy import cast as cast_to

from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job, JobState
from noonday.ids import first_id
from noonday.store.owners import owned_by
from noonday.store.reading import RowError
from noonday.store.rows import job_from_row
from noonday.store.tables import ARMED, executions, jobs

__all__ = ["NEWEST", "SAMPLE", "SLOT", "Ahead", "Past", "ahead", "past"]

log = structlog.get_logger(__name__)

SLOT: Final = timedelta(minutes=10)
NEWEST: Final = 50_000  # executions that one look counts, at most
SAMPLE: Final = 1000  # jobs that stand for all of them where there are more
_LAST: Final = 34  # the last three digits of an id are chance: a share of them is a share of the jobs
_SHARES: Final = 16**3
_EARLY: Final = timedelta(hours=1)  # more than anything is planned ahead of its time
_SLOT_CHARS: Final = len("2027-01-01 12:0")  # both databases write an instant in UTC: this is its ten minutes


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """Due instants by the beginning of their slot; one row may stand for many that were skipped."""

    slots: dict[datetime, dict[ExecutionState, int]]
    partial: bool  # there were more than the NEWEST, which alone are counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Ahead:
    """Jobs that will fire; each stands for `weight` of them."""

    jobs: list[Job]
    weight: float = 1.0


def ahead(conn: Connection, until: datetime, service: str | None = None) -> Ahead:
    """Those that fire until then: all of them, or a sample that is the same each time."""
    wanted: list[Any] = [ARMED, jobs.c.status != JobState.CANCELLED.value, jobs.c.next_run_at <= until]
    if service is not None:
        wanted.append(owned_by(conn, service))
    total = int(conn.execute(select(func.count()).select_from(jobs).where(*wanted)).scalar_one())
    if total > SAMPLE:
        share = max(_SHARES * SAMPLE // total, 1)
        wanted.append(func.substr(cast_to(jobs.c.id, Text), _LAST, 3) < f"{share:03x}")
    rows = conn.execute(select(jobs).where(*wanted).limit(2 * SAMPLE)).mappings().all()
    return Ahead(jobs=list(_readable(rows)), weight=total / len(rows) if rows else 1.0)


def _readable(rows: Iterable[RowMapping]) -> Iterator[Job]:
    for row in rows:
        try:
            yield job_from_row(row)
        except RowError as exc:
            log.warning("a job's row cannot be read", job_id=row["id"], error=str(exc), action="pulse")


def past(conn: Connection, since: datetime, until: datetime, service: str | None = None) -> Past:
    """Of what was due in [since, until)."""
    slot = func.substr(cast_to(executions.c.scheduled_for, Text), 1, _SLOT_CHARS).label("slot")
    skips = case((executions.c.skipped_count > 0, executions.c.skipped_count), else_=1)
    instants = case((executions.c.state == ExecutionState.SKIPPED.value, skips), else_=1).label("instants")
    newest = (
        select(slot, executions.c.state, instants)
        .where(executions.c.id >= first_id(since - _EARLY))  # ids sort by the time of their making
        .where(executions.c.scheduled_for >= since, executions.c.scheduled_for < until)
    )
    if service is not None:
        newest = newest.where(executions.c.job_id.in_(select(jobs.c.id).where(owned_by(conn, service))))
    seen = newest.order_by(executions.c.id.desc()).limit(NEWEST).subquery()
    counted = select(seen.c.slot, seen.c.state, func.sum(seen.c.instants), func.count())
    found: dict[datetime, dict[ExecutionState, int]] = {}
    rows = 0
    for text, state, sum_, count in conn.execute(counted.group_by(seen.c.slot, seen.c.state)):
        at = datetime.fromisoformat(f"{text}0").replace(tzinfo=UTC)
        found.setdefault(at, {})[ExecutionState(state)] = int(sum_)
        rows += count
    return Past(slots=found, partial=rows == NEWEST)
