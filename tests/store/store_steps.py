"""Short steps for tests of the store: add, plan, claim, end, look."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import Connection

from noonday.domain.execution import Execution, ExecutionId
from noonday.domain.job import Job, JobId
from noonday.domain.lifecycle import Settlement
from noonday.domain.outcome import Completed, Failed, Outcome
from noonday.ports import Claim
from noonday.store import executions, jobs
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Ending
from tests.factories import LEASE, NOON, an_execution

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
OK = Completed()
BAD = Failed(error="went wrong")


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
