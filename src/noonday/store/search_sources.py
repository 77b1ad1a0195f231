"""Where each field of a search is found in the tables; the fields are in `domain.search_fields`."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Text, and_, case, func, not_, null, select
from sqlalchemy import cast as cast_to

from noonday.domain.job import JobState
from noonday.domain.search_values import Test
from noonday.domain.searching import FREE
from noonday.store import dialects
from noonday.store.owners import owner
from noonday.store.search_sql import Sources, any_of, column, items, of_its_job, span, tested
from noonday.store.tables import audit, breakers, executions, jobs

__all__ = ["AUDIT", "BREAKERS", "EXECUTIONS", "JOBS"]


def _target(conn: Connection) -> ColumnElement[Any]:
    """A job without one fetches its URL."""
    return func.coalesce(dialects.of(conn).text_of(jobs.c.target, "type"), "fetch")


_ARMED: Final = and_(
    jobs.c.schedule_enabled, not_(jobs.c.is_paused), jobs.c.status != JobState.CANCELLED.value
)

JOBS: Final[Sources] = {
    FREE: column(jobs.c.name),
    "status": column(jobs.c.status),
    "last_status": column(jobs.c.last_status),
    "name": column(jobs.c.name),
    "id": column(cast_to(jobs.c.id, Text)),
    "tag": items(jobs.c.tags),
    "service": column(owner),
    "source": column(jobs.c.source_id),
    "url": column(jobs.c.url),
    "type": column(jobs.c.schedule_type),
    "target": column(_target),
    "timezone": column(jobs.c.timezone),
    "priority": column(jobs.c.priority),
    "version": column(jobs.c.scheduler_version),
    "enabled": column(jobs.c.schedule_enabled),
    "paused": column(jobs.c.is_paused),
    "next": column(case((_ARMED, jobs.c.next_run_at), else_=null())),
    "last": column(jobs.c.last_run_at),
    "created": column(jobs.c.created_at),
    "updated": column(jobs.c.updated_at),
}

EXECUTIONS: Final[Sources] = {
    FREE: any_of(of_its_job(JOBS["name"]), column(executions.c.error)),
    "status": column(executions.c.state),
    "job": any_of(of_its_job(JOBS["name"]), column(cast_to(executions.c.job_id, Text))),
    "id": column(cast_to(executions.c.id, Text)),
    "tag": of_its_job(JOBS["tag"]),
    "service": of_its_job(JOBS["service"]),
    "cause": column(executions.c.cause),
    "by": column(executions.c.triggered_by),
    "skip": column(executions.c.skip_reason),
    "wait": column(executions.c.wait_reason),
    "instance": column(executions.c.instance_id),
    "error": column(executions.c.error),
    "priority": column(executions.c.lane),
    "version": column(executions.c.road),
    "number": column(executions.c.number),
    "attempt": column(executions.c.attempt),
    "due": column(executions.c.scheduled_for),
    "created": column(executions.c.created_at),
    "started": column(executions.c.started_at),
    "ended": column(executions.c.completed_at),
    "took": span(executions.c.started_at, executions.c.completed_at),
    "late": span(executions.c.scheduled_for, executions.c.started_at),
}


def _audited_job(conn: Connection, test: Test) -> ColumnElement[bool]:
    named = select(cast_to(jobs.c.id, Text)).where(tested(jobs.c.name, test))
    found = audit.c.subject_id.in_(named) | tested(audit.c.subject_id, test)
    return and_(audit.c.kind == "job", found)


AUDIT: Final[Sources] = {
    FREE: any_of(column(audit.c.actor), column(audit.c.action), column(audit.c.subject_id)),
    "actor": column(audit.c.actor),
    "action": column(audit.c.action),
    "kind": column(audit.c.kind),
    "subject": column(audit.c.subject_id),
    "job": _audited_job,
    "revision": column(audit.c.revision),
    "at": column(audit.c.at),
}

BREAKERS: Final[Sources] = {
    FREE: column(breakers.c.domain),
    "domain": column(breakers.c.domain),
    "state": column(breakers.c.state),
    "failures": column(breakers.c.failures),
    "trips": column(breakers.c.trips),
    "error": column(breakers.c.last_error),
    "opened": column(breakers.c.opened_at),
    "updated": column(breakers.c.updated_at),
}
