"""The jobs that tell what will be due soon."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy import Connection, RowMapping, Text, func, select
from sqlalchemy import cast as cast_to

from noonday.domain.job import Job, JobState
from noonday.store.owners import owned_by
from noonday.store.reading import RowError
from noonday.store.rows import job_from_row
from noonday.store.tables import ARMED, jobs

__all__ = ["SAMPLE", "Ahead", "ahead"]

log = structlog.get_logger(__name__)

SAMPLE: Final = 1000  # jobs that stand for all of them where there are more
_LAST: Final = 34  # the last three digits of an id are chance: a share of them is a share of the jobs
_SHARES: Final = 16**3


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
