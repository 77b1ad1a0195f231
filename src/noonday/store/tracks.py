"""What a line of time is drawn from: the jobs that have a track, and their runs within a span."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, literal, select

from noonday.domain.execution import ExecutionId, ExecutionState
from noonday.domain.job import JobId
from noonday.domain.timeline import Grouping, Seen
from noonday.store import dialects
from noonday.store.job_search import JobFilter, conditions_of, count
from noonday.store.owners import owner
from noonday.store.tables import RUNNING, executions, jobs

__all__ = ["GROUPED", "MOST_RUNS", "Track", "Tracks", "runs_within", "tracks"]

MOST_RUNS: Final = 50_000
GROUPED: Final = 10_000  # jobs that are put into groups, the first by name
_BEFORE: Final = timedelta(hours=6)  # a run that was due longer before the span has ended, or is running
_COLUMNS: Final = tuple(
    executions.c[name]
    for name in (
        "id", "state", "scheduled_for", "available_at", "started_at", "completed_at",
        "through_at", "attempt", "skipped_count", "job_id",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    job_id: JobId
    name: str
    group: str = ""  # the service or the tag; empty for a job that has none


@dataclass(frozen=True, slots=True, kw_only=True)
class Tracks:
    shown: list[Track]
    total: int  # jobs that match
    groups: dict[str, int]  # how many jobs each has, on all pages: of all that match, or of those GROUPED


def tracks(conn: Connection, wanted: JobFilter, by: Grouping, limit: int, offset: int = 0) -> Tracks:
    """Jobs that match, by group and name, those of no group last."""
    conditions = conditions_of(conn, wanted)
    named = select(jobs.c.id).where(*conditions).order_by(jobs.c.name, jobs.c.id)
    first = named.limit(limit).offset(offset) if by is Grouping.NONE else named.limit(GROUPED)
    group = func.coalesce(_group(conn, by), "").label("group")
    chosen = select(jobs.c.id, jobs.c.name, group).where(jobs.c.id.in_(first)).subquery()
    query = select(chosen).order_by(chosen.c.group == "", chosen.c.group, chosen.c.name, chosen.c.id)
    if by is not Grouping.NONE:
        query = query.limit(limit).offset(offset)
    shown = [
        Track(job_id=JobId(job_id), name=name or job_id, group=found)
        for job_id, name, found in conn.execute(query)
    ]
    if by is Grouping.NONE:
        total = count(conn, wanted)
        return Tracks(shown=shown, total=total, groups={"": total} if total else {})
    counted = conn.execute(select(chosen.c.group, func.count()).group_by(chosen.c.group))
    groups = {row[0]: row[1] for row in counted}
    grouped = sum(groups.values())
    return Tracks(shown=shown, total=count(conn, wanted) if grouped == GROUPED else grouped, groups=groups)


def _group(conn: Connection, by: Grouping) -> ColumnElement[str]:
    match by:
        case Grouping.SERVICE:
            return owner(conn)
        case Grouping.TAG:
            return dialects.of(conn).first_item(jobs.c.tags)
        case Grouping.NONE:
            return literal("")


def runs_within(
    conn: Connection, ids: Collection[JobId], since: datetime, until: datetime
) -> tuple[dict[JobId, list[Seen]], bool]:
    """Runs of these jobs that lie in the span, at most the newest MOST_RUNS; and whether there are more."""
    ours = dialects.of(conn).among(executions.c.job_id, ids)
    due = executions.c.scheduled_for
    span = (due >= since - _BEFORE, due <= until)
    rows = list(conn.execute(select(*_COLUMNS).where(ours, *span).order_by(due.desc()).limit(MOST_RUNS + 1)))
    more = len(rows) > MOST_RUNS
    rows = rows[:MOST_RUNS] + list(
        conn.execute(select(*_COLUMNS).where(ours, RUNNING, due < since - _BEFORE))
    )
    found: dict[JobId, list[Seen]] = {}
    for row in rows:
        seen = _seen(row)
        if _reaches(seen, since):
            found.setdefault(JobId(row[-1]), []).append(seen)
    return found, more


def _seen(row: Any) -> Seen:
    run, state, due, available, started, completed, through, attempt, skipped, _ = row
    return Seen(
        id=ExecutionId(run),
        state=ExecutionState(state),
        scheduled_for=due,
        available_at=available,
        started_at=started,
        completed_at=completed,
        through_at=through,
        attempt=attempt,
        instants=max(skipped, 1),
    )


def _reaches(seen: Seen, since: datetime) -> bool:
    """One that was over before the span began is none of it."""
    last = seen.through_at or seen.completed_at or seen.scheduled_for
    return seen.state.open or max(last, seen.scheduled_for) >= since
