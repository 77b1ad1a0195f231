"""What follows when something ends: jobs come to rest; turns are given, dependants are set going."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, or_, select, update

from noonday.domain.execution import ExecutionId, SkipReason, WaitReason
from noonday.domain.job import Job, JobState
from noonday.domain.lifecycle import resting_state
from noonday.store import dialects
from noonday.store.facts import NOTHING_OPEN, OpenWork, open_work
from noonday.store.notices import CANCEL, WORK, tell
from noonday.store.tables import DEPENDS_ON, PENDING, RUNNING, executions, job_dependencies, jobs


def resting(job: Job, work: OpenWork, last_status: str | None) -> JobState:
    return resting_state(
        job=job,
        open_running=work.running,
        open_waiting_manual=work.forced,
        open_waiting=work.waiting,
        last_status=last_status,
    )


def rest(conn: Connection, idle: Mapping[str, Job], now: datetime) -> None:
    """Give these locked jobs the state that follows from what is open of them, and the next one its turn."""
    if not idle:
        return
    work = open_work(conn, list(idle))
    give_turns(conn, idle, work, now)
    moved = []
    for job_id, job in idle.items():
        state = resting(job, work.get(job_id, NOTHING_OPEN), job.last_status)
        if state is not job.state:
            moved.append({"id": job_id, "status": state.value})
    dialects.of(conn).update(conn, jobs, moved)


def give_turns(
    conn: Connection, found: Mapping[str, Job], work: Mapping[str, OpenWork], now: datetime
) -> None:
    """Of those who wait for their turn, the oldest, as many as may run; the claim decides again."""
    for job_id, there in work.items():
        free = found[job_id].overlapping.max_instances - there.running
        if there.queueing and free > 0:
            _give_turn(conn, job_id, free, now)


def _give_turn(conn: Connection, job_id: str, free: int, now: datetime) -> None:
    oldest = (
        select(executions.c.id)
        .where(PENDING, executions.c.job_id == job_id, executions.c.available_at.is_(None))
        .where(executions.c.wait_reason == WaitReason.OVERLAP.value)
        .order_by(executions.c.scheduled_for, executions.c.id)
        .limit(free)
    )
    conn.execute(update(executions).where(executions.c.id.in_(oldest)).values(available_at=now))
    tell(conn, WORK)


def release_dependants(conn: Connection, parent_ids: Collection[str], now: datetime) -> int:
    """Whatever waits for one of these jobs is judged again at its next claim."""
    children = _children(conn, parent_ids)
    if not children:
        return 0
    query = (
        update(executions)
        .where(PENDING, dialects.of(conn).among(executions.c.job_id, children))
        .where(executions.c.available_at.is_(None))
        .where(executions.c.wait_reason == WaitReason.DEPENDENCY.value)
        .values(available_at=now)
    )
    released = conn.execute(query).rowcount
    if released:
        tell(conn, WORK)
    return released


def revive_dependants(conn: Connection, parent_id: str, slot: datetime, now: datetime) -> int:
    """A parent succeeded late: of each child, the newest run skipped for want of it is due again."""
    revived = 0
    for child in _children(conn, [parent_id]):
        period = or_(executions.c.covers_from.is_(None), executions.c.covers_from < slot)
        newest = (
            select(executions.c.id)
            .where(executions.c.job_id == child, executions.c.scheduled_for >= slot, period)
            .where(executions.c.skip_reason == SkipReason.DEPENDENCY.value)
            .order_by(executions.c.scheduled_for.desc())
            .limit(1)
        )
        values: dict[str, Any] = {
            "state": "queued",
            "available_at": now,
            "skip_reason": None,
            "skipped_count": 0,
            "wait_reason": WaitReason.DEPENDENCY.value,
            "detail": None,
            "completed_at": None,
        }
        query = update(executions).where(executions.c.id.in_(newest)).values(values)
        revived += conn.execute(query).rowcount
    if revived:
        tell(conn, WORK)
    return revived


def _children(conn: Connection, parent_ids: Collection[str]) -> list[str]:
    if not parent_ids:
        return []
    query = select(job_dependencies.c.job_id).where(
        dialects.of(conn).among(job_dependencies.c.parent_id, parent_ids),
        job_dependencies.c.kind == DEPENDS_ON,
    )
    return list(dict.fromkeys(conn.execute(query).scalars()))


def ask_to_stop(
    conn: Connection, ids: Collection[ExecutionId] | Sequence[str], by: str, now: datetime
) -> None:
    """Whoever runs these will be told; an earlier request stands."""
    query = (
        update(executions)
        .where(RUNNING, dialects.of(conn).among(executions.c.id, list(ids)))
        .where(executions.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=now, cancel_requested_by=by)
    )
    conn.execute(query)
    tell(conn, CANCEL)
