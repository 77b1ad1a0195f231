"""Recurring jobs as schedulers: how many are in which state, the worst first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, Text, and_, case, func, literal, or_, select
from sqlalchemy import cast as cast_to

from noonday.domain.execution import ExecutionState
from noonday.domain.job import JobId, JobState
from noonday.domain.schedulers import DOWN, RECURRING, SchedulerState
from noonday.store import dialects
from noonday.store.owners import owned_by
from noonday.store.tables import jobs

__all__ = ["SchedulerRow", "Totals", "one", "page", "totals", "worst"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerRow:
    job_id: JobId
    name: str
    display_name: str
    description: str
    state: SchedulerState
    critical: bool  # `critical` in its metadata: all is unwell while this one is
    enabled: bool
    last_run_at: datetime | None
    last_success_at: datetime | None
    last_status: str | None
    next_run_at: datetime | None

    @property
    def healthy(self) -> bool:
        return self.state is not SchedulerState.ERROR


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    total: int = 0
    running: int = 0
    errors: int = 0
    critical_down: int = 0


_name: Final = func.coalesce(jobs.c.name, cast_to(jobs.c.id, Text))
_state: Final = case(
    (or_(~jobs.c.schedule_enabled, jobs.c.status == JobState.CANCELLED.value), SchedulerState.STOPPED.value),
    (jobs.c.is_paused, SchedulerState.PAUSED.value),
    (jobs.c.last_status == ExecutionState.FAILED.value, SchedulerState.ERROR.value),
    else_=literal(SchedulerState.RUNNING.value),
)
_down: Final = _state.in_([state.value for state in DOWN])
# A job of plain SQL may leave the kind to be told from its other columns.
_recurs: Final = or_(
    jobs.c.schedule_type.in_(RECURRING),
    and_(
        jobs.c.schedule_type.is_(None),
        or_(
            jobs.c.cron_expression.is_not(None),
            jobs.c.schedule_time.is_not(None),
            jobs.c.interval_minutes.is_not(None),
            jobs.c.frequency.is_not(None),
        ),
    ),
)


def totals(conn: Connection, service: str | None = None) -> Totals:
    def count(condition: ColumnElement[bool]) -> ColumnElement[int]:
        return func.count(case((condition, 1)))

    query = select(
        func.count(),
        count(_state == SchedulerState.RUNNING.value),
        count(_state == SchedulerState.ERROR.value),
        count(and_(_critical(conn), _down)),
    )
    total, running, errors, down = conn.execute(query.where(_wanted(conn, service))).one()
    return Totals(total=total, running=running, errors=errors, critical_down=down)


def worst(conn: Connection, limit: int, service: str | None = None) -> list[SchedulerRow]:
    """Critical ones that are down, then what fails, then critical ones, then the others."""
    critical = _critical(conn)
    rank = case(
        (and_(critical, _down), 0),
        (_state == SchedulerState.ERROR.value, 1),
        (critical, 2),
        else_=3,
    )
    return _rows(conn, _columns(conn).where(_wanted(conn, service)).order_by(rank, _name).limit(limit))


def page(conn: Connection, limit: int, offset: int, service: str | None = None) -> list[SchedulerRow]:
    """By name."""
    query = _columns(conn).where(_wanted(conn, service)).order_by(_name).limit(limit).offset(offset)
    return _rows(conn, query)


def one(conn: Connection, job_id: JobId) -> SchedulerRow | None:
    found = _rows(conn, _columns(conn).where(_recurs, jobs.c.id == job_id))
    return found[0] if found else None


def _columns(conn: Connection) -> Select[Any]:
    return select(
        jobs.c.id.label("job_id"),
        _name.label("name"),
        func.coalesce(_of_metadata(conn, "display_name"), _name).label("display_name"),
        jobs.c.description,
        _state.label("state"),
        _critical(conn).label("critical"),
        jobs.c.schedule_enabled.label("enabled"),
        jobs.c.last_run_at,
        jobs.c.last_success_at,
        jobs.c.last_status,
        jobs.c.next_run_at,
    )


def _wanted(conn: Connection, service: str | None) -> ColumnElement[bool]:
    return _recurs if service is None else and_(_recurs, owned_by(conn, service))


def _critical(conn: Connection) -> ColumnElement[bool]:
    """True, or as one database says it, 1."""
    return func.coalesce(_of_metadata(conn, "critical"), "").in_(("true", "1"))


def _of_metadata(conn: Connection, key: str) -> ColumnElement[str]:
    return cast_to(dialects.of(conn).text_of(jobs.c.metadata, key), Text)


def _rows(conn: Connection, query: Select[Any]) -> list[SchedulerRow]:
    return [
        SchedulerRow(**dict(row) | {"state": SchedulerState(row["state"]), "critical": bool(row["critical"])})
        for row in conn.execute(query).mappings()
    ]
