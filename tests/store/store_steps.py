"""Short steps for tests of the store: add, plan, claim, end, look, and all that is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from noonday.domain.errors import Conflict
from noonday.domain.execution import Execution, ExecutionId
from noonday.domain.job import Job, JobId
from noonday.domain.lifecycle import Settlement
from noonday.domain.outcome import Completed, Failed, Outcome
from noonday.ports import Claim
from noonday.store import executions, history, jobs
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Ending
from tests.factories import LEASE, NOON, an_execution

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
OK = Completed()
BAD = Failed(error="went wrong")


def as_new(db: Database) -> Database:
    """With tables and indexes that no earlier test used: what was left empty counts when a plan is chosen."""
    if db.dialect == "postgresql":
        db.write_now(lambda conn: conn.exec_driver_sql("TRUNCATE jobs CASCADE"))
    return db


def analyse(db: Database) -> None:
    db.write_now(lambda conn: conn.exec_driver_sql("ANALYZE"))


def add(db: Database, *made: Job) -> None:
    for job in made:
        db.write_now(lambda conn, job=job: jobs.add(conn, job))  # type: ignore[misc]  # bound per turn


def plan(db: Database, *planned: Execution) -> int:
    return db.write_now(lambda conn: executions.plan(conn, planned))


def plan_run(db: Database, job: Job, when: datetime = NOON, **changes: object) -> Execution:
    execution = an_execution(job=job, scheduled_for=when, **changes)
    plan(db, execution)
    return execution


def claim(
    db: Database,
    now: datetime = NOON,
    limit: int = 10,
    instance: str = "instance-1",
    ageing: timedelta = timedelta(minutes=5),
) -> list[Claim]:
    order = ClaimOrder(instance_id=instance, limit=limit, now=now, lease=LEASE, ageing=ageing)
    return db.write_now(lambda conn: executions.claim(conn, order))


def end(db: Database, claimed: Claim, outcome: Outcome = OK, now: datetime = NOON + SECOND) -> Settlement:
    (settlement,) = settle(db, [ending(claimed, outcome)], now)
    return settlement


def settle(db: Database, endings: list[Ending], now: datetime = NOON + SECOND) -> list[Settlement]:
    return db.write_now(lambda conn: executions.settle(conn, endings, now))


def ending(claimed: Claim, outcome: Outcome = OK) -> Ending:
    assert claimed.execution.lease_token is not None
    return Ending(execution_id=claimed.execution.id, token=claimed.execution.lease_token, outcome=outcome)


def run(db: Database, job: Job, when: datetime = NOON, outcome: Outcome = OK) -> Settlement:
    """One whole run of a job: planned, claimed and ended."""
    plan_run(db, job, when)
    (claimed,) = [one for one in claim(db, when) if one.job.id == job.id]
    return end(db, claimed, outcome, when + SECOND)


def look(db: Database, execution: Execution | ExecutionId) -> Execution:
    wanted = execution.id if isinstance(execution, Execution) else execution
    found = db.read_now(lambda conn: executions.get(conn, wanted))
    assert found is not None
    return found


def job_now(db: Database, job: Job | JobId) -> Job:
    wanted = job.id if isinstance(job, Job) else job
    found = db.read_now(lambda conn: jobs.get(conn, wanted))
    assert found is not None
    return found


def sql(db: Database, statement: str) -> list[dict[str, object]]:
    """Plain SQL, as a person would write it; rows of a query."""

    def work(conn: Connection) -> list[dict[str, object]]:
        result = conn.exec_driver_sql(statement)
        return [dict(row) for row in result.mappings()] if result.returns_rows else []

    return db.write_now(work)


def everything(db: Database, made: Sequence[Job]) -> dict[str, Any]:
    """All that is kept, but for what is drawn by chance."""

    def kept(conn: Connection) -> dict[str, Any]:
        found = history.page(conn, limit=1000).items
        return {
            "runs": sorted(map(_plain, found), key=lambda run: (run.job_id, run.scheduled_for, run.cause)),
            "attempts": sorted(
                ((run.job_id, run.scheduled_for, one) for run in found for one in _attempts(conn, run)),
                key=lambda told: told[:2],
            ),
            "jobs": [_job(conn, job) for job in made],
        }

    columns = "last_status_for, last_success_at, last_success_for, last_run_at, lock_acquired_at, "
    # The lock is the lease of a run of the job that goes on: which one is left open here.
    lock = (
        "lock_token IS NULL AS free, EXISTS (SELECT 1 FROM executions AS e WHERE e.job_id = jobs.id "
        "AND e.state = 'running' AND e.lease_token = jobs.lock_token) AS alive"
    )
    rows = sql(db, f"SELECT {columns} {lock} FROM jobs ORDER BY id")
    return db.read_now(kept) | {"rows": rows}


def _job(conn: Connection, job: Job) -> object:
    try:
        return jobs.get(conn, job.id)
    except Conflict as unreadable:
        return str(unreadable)


def _plain(run: Execution) -> Execution:
    return replace(run, id=ExecutionId(""), lease_token=run.lease_token and "a token")


def _attempts(conn: Connection, run: Execution) -> list[Any]:
    return [replace(one, execution_id=ExecutionId("")) for one in history.attempts(conn, run.id)]


def wipe(db: Database) -> None:
    for table in ("attempts", "executions", "job_dependencies", "outbox", "jobs"):
        sql(db, f"DELETE FROM {table}")


def runs_of(job: Job, count: int, **changes: Any) -> list[Execution]:
    return [an_execution(job=job, scheduled_for=NOON - n * SECOND, **changes) for n in range(count)]
