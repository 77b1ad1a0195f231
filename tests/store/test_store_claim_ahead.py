"""Claims made ahead of the moment: only of what surely starts then, and nothing of it looks early."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from noonday.domain.execution import ExecutionState, Road
from noonday.domain.job import JobId, JobState, MisfirePolicy, Overlap, OverlapPolicy
from noonday.domain.outcome import Lost, Released
from noonday.domain.schedule import Once
from noonday.ports import Claim
from noonday.store import executions
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from tests.factories import LEASE, NOON, TIMEOUT, a_job
from tests.store.store_steps import MINUTE, SECOND, add, end, job_now, look, plan_run

SOON = NOON + timedelta(milliseconds=50)
LEAD = timedelta(milliseconds=100)


def ahead(db: Database, now: datetime = NOON, lead: timedelta = LEAD) -> tuple[list[Claim], datetime | None]:
    order = ClaimOrder(instance_id="i", limit=10, now=now, lease=LEASE, lead=lead)
    return db.write_now(lambda conn: executions.claim_and_look_ahead(conn, order))


def test_it_is_claimed_and_starts_at_its_moment(db: Database) -> None:
    job = a_job(state=JobState.SCHEDULED)
    add(db, job)
    run = plan_run(db, job, SOON)
    ([claimed], following) = ahead(db)
    assert following is None
    for seen in (claimed.execution, look(db, run)):
        assert seen.state is ExecutionState.RUNNING
        assert (seen.claimed_at, seen.started_at, seen.available_at) == (NOON, SOON, SOON)
        assert (seen.lease_expires_at, seen.deadline_at) == (NOON + LEASE, SOON + TIMEOUT)
    assert job_now(db, job).last_run_at == SOON


def test_what_is_due_later_is_left(db: Database) -> None:
    job = a_job()
    add(db, job)
    plan_run(db, job, SOON)
    assert ahead(db, lead=timedelta(milliseconds=49)) == ([], SOON)
    assert ahead(db, lead=timedelta()) == ([], SOON)


@pytest.mark.parametrize(
    "changes",
    [
        {"paused": True},
        {"enabled": False},
        {"depends_on": (JobId("01890000-0000-7000-8000-000000000000"),)},
        {"overlapping": OverlapPolicy(overlap=Overlap.SKIP)},
        {"overlapping": OverlapPolicy(overlap=Overlap.QUEUE)},
        {"overlapping": OverlapPolicy(overlap=Overlap.REPLACE)},
    ],
)
def test_what_may_be_decided_otherwise_is_decided_at_its_moment(
    db: Database, changes: dict[str, Any]
) -> None:
    job = a_job(**changes)
    add(db, job)
    if "overlapping" in changes:
        plan_run(db, job, NOON - SECOND)
        assert len(ahead(db)[0]) == 1
    run = plan_run(db, job, SOON)
    assert ahead(db) == ([], SOON)
    assert look(db, run).state is ExecutionState.QUEUED


def test_a_run_that_ended_before_the_moment_is_in_nobodys_way(db: Database) -> None:
    job = a_job(overlapping=OverlapPolicy(overlap=Overlap.SKIP))
    add(db, job)
    plan_run(db, job, NOON - SECOND)
    ([first], _) = ahead(db)
    run = plan_run(db, job, SOON)
    assert ahead(db)[0] == []
    end(db, first, now=NOON)
    ([claimed], _) = ahead(db, SOON)
    assert claimed.execution.id == run.id


@pytest.mark.parametrize("outcome", [Released(), Lost(detail="its worker died")])
def test_what_is_given_back_before_its_moment_still_waits_for_it(
    db: Database, outcome: Released | Lost
) -> None:
    job = a_job()
    add(db, job)
    run = plan_run(db, job, SOON)
    ([claimed], _) = ahead(db)
    end(db, claimed, outcome, now=NOON + timedelta(milliseconds=1))
    assert look(db, run).available_at == SOON


def test_a_single_run_that_was_claimed_ahead_is_not_due_again(db: Database) -> None:
    job = a_job(schedule=Once(run_at=SOON))
    add(db, job)
    plan_run(db, job, SOON)
    ([claimed], _) = ahead(db)
    end(db, claimed, now=SOON + SECOND)
    after = job_now(db, job)
    assert after.state is JobState.COMPLETED
    assert after.last_run_at is not None
    assert after.last_run_at >= SOON


def test_what_the_road_names_ahead_is_claimed_ahead(db: Database) -> None:
    job = a_job(misfire=MisfirePolicy(grace=MINUTE))
    add(db, job)
    run = plan_run(db, job, SOON, road=Road.STREAMS)
    order = ClaimOrder(instance_id="i", limit=10, now=NOON, lease=LEASE, lead=LEAD)
    taken = db.write_now(lambda conn: executions.claim_these(conn, order, [run.id]))
    assert [claim.execution.started_at for claim in taken.claims] == [SOON]
    assert not taken.later
