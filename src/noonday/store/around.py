"""What lies around one run: those before and behind it, what it came from, how long such runs take."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import median
from typing import Final

from sqlalchemy import Connection, and_, or_, select

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState
from noonday.store.deliveries import Delivery, between
from noonday.store.owners import owned_by
from noonday.store.strips import strips
from noonday.store.tables import ON_SUCCESS_OF, audit, executions, job_dependencies, jobs

__all__ = ["Around", "Beside", "Change", "Parent", "around"]

_ENOUGH: Final = 5  # runs, before they say what is usual
_TOGETHER: Final = timedelta(seconds=5)  # a delivery and the runs it starts


@dataclass(frozen=True, slots=True)
class Beside:
    id: ExecutionId
    number: int
    state: ExecutionState


@dataclass(frozen=True, slots=True)
class Parent:
    """The run whose success started this one."""

    id: ExecutionId
    number: int
    job_name: str


@dataclass(frozen=True, slots=True)
class Change:
    """The last change of the job before the run began."""

    id: str
    revision: int
    actor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Around:
    previous: Beside | None
    next: Beside | None
    parent: Parent | None
    delivery: Delivery | None
    change: Change | None
    usual: timedelta | None  # half of the last good runs took no longer


def around(conn: Connection, run: Execution, service: str | None) -> Around:
    """Of another service's jobs nothing, where one is given."""
    return Around(
        previous=_beside(conn, run, older=True),
        next=_beside(conn, run, older=False),
        parent=_parent(conn, run, service) if run.cause is Cause.UPSTREAM else None,
        delivery=_delivery(conn, run) if run.cause is Cause.TRIGGER else None,
        change=_change(conn, run),
        usual=_usual(conn, run),
    )


def _beside(conn: Connection, run: Execution, *, older: bool) -> Beside | None:
    """Runs, not skips: the next one in the order in which they were due."""
    due, ident = executions.c.scheduled_for, executions.c.id
    if older:
        beyond = or_(due < run.scheduled_for, and_(due == run.scheduled_for, ident < run.id))
        order = (due.desc(), ident.desc())
    else:
        beyond = or_(due > run.scheduled_for, and_(due == run.scheduled_for, ident > run.id))
        order = (due.asc(), ident.asc())
    query = (
        select(ident, executions.c.number, executions.c.state)
        .where(executions.c.job_id == run.job_id, beyond)
        .where(executions.c.state != ExecutionState.SKIPPED.value)
    )
    row = conn.execute(query.order_by(*order).limit(1)).first()
    return None if row is None else Beside(ExecutionId(row.id), row.number, ExecutionState(row.state))


def _parent(conn: Connection, run: Execution, service: str | None) -> Parent | None:
    """A follower has the due time of the run that it follows."""
    query = (
        select(executions.c.id, executions.c.number, jobs.c.name)
        .join(jobs, jobs.c.id == executions.c.job_id)
        .join(job_dependencies, job_dependencies.c.parent_id == jobs.c.id)
        .where(job_dependencies.c.job_id == run.job_id, job_dependencies.c.kind == ON_SUCCESS_OF)
        .where(executions.c.scheduled_for == run.scheduled_for)
        .where(executions.c.state == ExecutionState.COMPLETED.value)
    )
    if service is not None:
        query = query.where(owned_by(conn, service))
    row = conn.execute(query.order_by(executions.c.completed_at.desc()).limit(1)).first()
    return None if row is None else Parent(ExecutionId(row.id), row.number, row.name)


def _delivery(conn: Connection, run: Execution) -> Delivery | None:
    near = between(conn, run.created_at - _TOGETHER, run.created_at + _TOGETHER)
    return next((one for one in near if any(s.get("execution_id") == run.id for s in one.started)), None)


def _change(conn: Connection, run: Execution) -> Change | None:
    began: datetime = run.started_at or run.created_at
    query = (
        select(audit.c.id, audit.c.revision, audit.c.actor)
        .where(audit.c.subject_id == run.job_id, audit.c.kind == "job")
        .where(audit.c.revision.is_not(None), audit.c.at <= began)
    )
    row = conn.execute(query.order_by(audit.c.id.desc()).limit(1)).first()
    return None if row is None else Change(row.id, row.revision, row.actor)


def _usual(conn: Connection, run: Execution) -> timedelta | None:
    bars = strips(conn, [run.job_id]).get(run.job_id, ())
    taken = [
        bar.took.total_seconds()
        for bar in bars
        if bar.took is not None and bar.id != run.id and bar.state is ExecutionState.COMPLETED
    ]
    return timedelta(seconds=median(taken)) if len(taken) >= _ENOUGH else None
