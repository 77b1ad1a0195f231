"""Sets a job aside that cannot be planned: paused, with the reason in its history and in the audit."""

from __future__ import annotations

import traceback
from dataclasses import replace
from datetime import datetime

import structlog
from sqlalchemy import Connection

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState
from noonday.domain.job import Job, JobState
from noonday.engine.loop import first_line
from noonday.ids import new_id
from noonday.store import audit, executions, jobs
from noonday.store.audit import AuditEntry

log = structlog.get_logger(__name__)


def set_aside(conn: Connection, job: Job, exc: Exception, now: datetime) -> None:
    """The job harms itself alone; whoever mends it resumes it."""
    why = f"the schedule could not be computed, so the job is paused: {first_line(exc)}"
    log.error("a job is set aside", action="set aside", job=job.name, job_id=job.id, exc_info=exc)
    row = Execution(
        id=ExecutionId(new_id(now)),
        job_id=job.id,
        cause=Cause.SCHEDULE,
        scheduled_for=job.next_run_at or now,
        available_at=None,
        state=ExecutionState.FAILED,
        lane=job.lane,
        detail=why,
        completed_at=now,
        created_at=now,
    )
    executions.plan(conn, [row])
    saved = jobs.save(conn, replace(job, paused=True, state=JobState.PAUSED, updated_at=now))
    stack = "".join(traceback.format_exception(exc))[-4000:]
    entry = AuditEntry(
        at=now,
        actor="scheduler",
        action="set aside",
        kind="job",
        subject_id=job.id,
        before={"paused": job.paused, "state": job.state.value},
        after={"paused": True, "state": saved.state.value, "error": why, "stack": stack},
        revision=saved.revision,
    )
    audit.record(conn, entry)
