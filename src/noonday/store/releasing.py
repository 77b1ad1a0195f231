"""What follows when something ends: jobs come to rest; turns are given, dependants are set going."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, or_, select, update

from noonday.domain.execution import ExecutionId, SkipReason, WaitReason
from noonday.domain.job import Job, JobState
from noonday.domain.lifecycle import resting_state
from noonday.store import dialects, tallying
from noonday.store.facts import NOTHING_OPEN, OpenWork, open_work
from noonday.store.notices import CANCEL, WORK, tell
from noonday.store.tables import DEPENDS_ON, HAS_STATE, PENDING, executions, job_dependencies, jobs


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
    work = open_work(conn, idle)
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
        if not there.queueing:
            continue
        free = found[job_id].overlapping.max_instances - there.running
        if free > 0:
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
    return release(conn, children_of(conn, parent_ids), now)


def release(conn: Connection, children: Collection[str], now: datetime) -> int:
    if not children:
        return 0
    query = (
        update(executions)
        .where(PENDING, dialects.of(conn).among(executions.c.job_id, children))
        .where(executions.c.available_at.is_(None))
        .where(executions.c.wait_reason == WaitReason.DEPENDENCY.value)
        .values(available_at=now)
    )
    return _woken(conn, conn.execute(query).rowcount)


def revive(conn: Connection, children: Collection[str], slot: datetime, now: datetime) -> int:
    """A parent succeeded late: of each child, the newest run skipped for want of it is due again."""
    revived = 0
    for child in children:
        period = or_(executions.c.covers_from.is_(None), executions.c.covers_from < slot)
        newest = (
            select(executions.c.id)
            .where(executions.c.job_id == child, executions.c.scheduled_for >= slot, period)
            .where(executions.c.skip_reason == SkipReason.DEPENDENCY.value)
            .order_by(executions.c.scheduled_for.desc())
            .limit(1)
        )
        ids = conn.execute(dialects.of(conn).locked(newest, executions)).scalars().all()
        if ids:
            tallying.reopen(conn, ids)
            query = update(executions).where(executions.c.id.in_(ids))
            revived += conn.execute(query.values({**_REVIVED, "available_at": now})).rowcount
    return _woken(conn, revived)


_REVIVED: dict[str, Any] = {
    "state": "queued",
    "skip_reason": None,
    "skipped_count": 0,
    "wait_reason": WaitReason.DEPENDENCY.value,
    "detail": None,
    "completed_at": None,
}


def _woken(conn: Connection, count: int) -> int:
    if count:
        tell(conn, WORK)
    return count


def children_of(conn: Connection, parent_ids: Collection[str]) -> list[str]:
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
        .where(HAS_STATE == "running", dialects.of(conn).among(executions.c.id, list(ids)))
        .where(executions.c.cancel_requested_at.is_(None))
        .values(cancel_requested_at=now, cancel_requested_by=by)
    )
    conn.execute(query)
    tell(conn, CANCEL)
