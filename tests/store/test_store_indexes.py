"""What is asked all the time is answered by an index, whatever else is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection, event

from noonday.domain import search_fields, searching
from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job, Lane, Overlap, OverlapPolicy
from noonday.domain.plans import Fire, Plan
from noonday.store import executions, facts, forecasting, glances, jobs, pauses, zones
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from noonday.store.history import ExecutionFilter
from noonday.store.open_runs import open_runs
from noonday.store.releasing import ask_to_stop
from tests.factories import LEASE, NOON, a_job, a_timing, an_execution
from tests.store.store_steps import MINUTE, SECOND, add, analyse, as_new, claim, ending, plan

ROWS = 3_000


@contextmanager
def plans_of(conn: Connection) -> Iterator[list[str]]:
    """Explains each query of ours that runs, just before it runs."""
    plans: list[str] = []
    explain = "EXPLAIN QUERY PLAN " if conn.dialect.name == "sqlite" else "EXPLAIN "

    @event.listens_for(conn, "before_cursor_execute")
    def before(c: object, cursor: object, statement: str, parameters: Any, *_: object) -> None:
        told = any(word in statement for word in ("pg_notify", "set_config"))
        if statement.startswith(("SELECT", "UPDATE", "WITH")) and not told:
            given = parameters[0] if isinstance(parameters, list) else parameters
            driver = conn.connection.dbapi_connection
            assert driver is not None
            asking = driver.cursor()
            asking.execute(explain + statement, given)
            plans.append(statement + "\n" + "\n".join(str(row[-1]) for row in asking.fetchall()))
            asking.close()

    try:
        yield plans
    finally:
        event.remove(conn, "before_cursor_execute", before)


@pytest.fixture(params=["analysed", "as it grew"])
def full(db: Database, request: pytest.FixtureRequest) -> Database:
    """Much history, many jobs that are not due, much that is planned ahead.

    Nobody tells SQLite to analyse its tables, so it must choose well without.
    """
    quiet = [a_job(next_run_at=NOON + n * MINUTE, paused=n % 2 == 0) for n in range(1, 400)]
    busy = a_job(next_run_at=NOON)

    def fill(conn: Connection) -> None:
        jobs.add_many(conn, [*quiet, busy])
        done = [
            an_execution(
                job=busy, scheduled_for=NOON - n * MINUTE, state=ExecutionState.COMPLETED, completed_at=NOON
            )
            for n in range(1, ROWS)
        ]
        ahead = [an_execution(job=job, scheduled_for=NOON + MINUTE, lane=Lane.HIGH) for job in quiet]
        executions.plan(conn, [*done, *ahead, an_execution(job=busy)])

    as_new(db).write_now(fill)
    if request.param == "analysed" or db.dialect == "postgresql":
        analyse(db)
    return db


def explained(db: Database, work: Callable[[Connection], object]) -> list[str]:
    def act(conn: Connection) -> list[str]:
        with plans_of(conn) as plans:
            work(conn)
        return plans

    return db.write_now(act)


def no_full_scan(plans: list[str]) -> None:
    for told in plans:
        plan_ = told.split("\n", 1)[1]
        # PostgreSQL may well read all of 400 jobs at once; what grows without end is the history.
        assert "Seq Scan on executions" not in plan_, told
        for table in ("executions", "jobs"):
            assert f"SCAN {table}\n" not in plan_ + "\n", told


def test_due_uses_its_partial_index(full: Database) -> None:
    plans = explained(full, lambda conn: jobs.due(conn, NOON, 100))
    assert "jobs_due_idx" in plans[0]
    plans = explained(full, jobs.next_due_at)
    assert "jobs_due_idx" in plans[0]
    plans = explained(full, lambda conn: jobs.many_due(conn, NOON, 100))
    assert "jobs_due_idx" in plans[0]


def test_what_was_just_added_is_planned_along_the_index(postgres_db: Database) -> None:
    """Nobody has counted it yet, and most of it is due: PostgreSQL would rather read and sort it all."""
    made = [a_job(next_run_at=NOON + n * SECOND / 1000) for n in range(3000)]
    as_new(postgres_db).write_now(lambda conn: jobs.add_many(conn, made))

    def look(conn: Connection) -> None:
        found = jobs.due(conn, NOON + MINUTE, 100)
        assert [one.job.id for one in found] == [job.id for job in made[:100]]
        assert jobs.next_due_at(conn) == NOON
        for ahead, many in ((999, True), (998, False)):
            until = NOON + ahead * SECOND / 1000
            assert jobs.many_due(conn, until, 1000) is many

    plans = explained(postgres_db, look)
    assert len(plans) == 5, "with the definitions of those that are due"
    for told in plans:
        plan_ = told.split("\n", 1)[1]
        assert "Sort" not in plan_, told
        assert "Seq Scan on jobs" not in plan_, told
        assert "FROM jobs" in told


def test_zones_in_use_are_found_by_their_index(full: Database) -> None:
    zoned = [a_job(timing=a_timing(timezone=zone)) for zone in ("Asia/Tokyo", "Europe/Berlin") * 300]
    full.write_now(lambda conn: jobs.add_many(conn, zoned))
    if full.dialect == "postgresql":
        analyse(full)
    (told,) = explained(full, zones.in_use)
    assert "jobs_zone_idx" in told
    assert "Seq Scan on jobs" not in told
    no_full_scan([told])
    assert full.read_now(zones.in_use) == ["Asia/Tokyo", "Europe/Berlin"]
    no_full_scan(explained(full, lambda conn: zones.waiting(conn, "Asia/Tokyo", NOON, zoned[0].id, 10)))


def test_whether_a_job_was_changed_is_told_by_its_index(full: Database) -> None:
    (told,) = explained(full, forecasting.state_of)
    assert "jobs_updated_idx" in told
    if full.dialect == "sqlite":
        assert "COVERING INDEX jobs_updated_idx" in told


def test_a_search_among_runs_looks_at_their_jobs_alone(full: Database) -> None:
    wanted = ExecutionFilter(terms=searching.parse("tag:nightly", search_fields.EXECUTIONS, NOON))
    looks = explained(full, lambda conn: glances.glance(conn, wanted, 50))
    asked = [told for told in looks if "EXISTS (SELECT jobs.id" in told]
    assert asked
    for told in asked:
        assert "SCAN jobs" not in told, "as SQLite does where it makes a list of them"


def test_a_claim_uses_its_partial_index(full: Database) -> None:
    order = ClaimOrder(instance_id="i", limit=100, now=NOON, lease=LEASE)
    plans = explained(full, lambda conn: executions.claim(conn, order))
    looks = [told for told in plans if "LIMIT" in told]
    assert looks
    for told in looks:
        assert "executions_claimable_idx" in told
    no_full_scan(plans)


def test_settling_scans_no_table(full: Database) -> None:
    (claimed,) = claim(full)
    plans = explained(full, lambda conn: executions.settle(conn, [ending(claimed)], NOON))
    assert any("executions_open_idx" in told for told in plans)
    no_full_scan(plans)


def test_looking_for_dead_leases_reads_running_ones_alone(full: Database) -> None:
    claim(full)
    plans = explained(full, lambda conn: executions.expired(conn, NOON + MINUTE))
    assert "executions_open_idx" in plans[0]
    plans = explained(full, executions.next_lease_end)
    assert "executions_open_idx" in plans[0]


def test_looking_for_changes_reads_changed_jobs_alone(full: Database) -> None:
    plans = explained(full, jobs.changed)
    assert "jobs_dirty_idx" in plans[0]


def test_looking_for_pauses_that_end_reads_those_alone(full: Database) -> None:
    plans = explained(full, lambda conn: pauses.over(conn, NOON))
    assert "jobs_paused_idx" in plans[0]
    plans = explained(full, pauses.next_end)
    assert "jobs_paused_idx" in plans[0]


def test_what_is_open_of_a_job_is_found_without_its_history(full: Database) -> None:
    job = full.write_now(lambda conn: jobs.due(conn, NOON, 1))[0].job
    no_full_scan(explained(full, lambda conn: open_runs(conn, job.id)))


def test_planning_scans_no_table(full: Database) -> None:
    job = a_job()
    add(full, job)
    plans = explained(full, lambda conn: executions.plan(conn, [an_execution(job=job)]))
    no_full_scan(plans)
    assert plan(full, an_execution(job=job)) == 0


@pytest.mark.parametrize("alike", [True, False])
def test_the_plans_of_due_jobs_are_written_without_a_scan(full: Database, alike: bool) -> None:
    add(full, *(a_job(next_run_at=NOON) for _ in range(3)))
    fire = Fire(scheduled_for=NOON, available_at=NOON, covers_from=NOON - MINUTE)

    def work(conn: Connection) -> None:
        plans = [
            (one, Plan(fires=(fire,), next_run_at=None if alike else NOON + n * MINUTE, fire_count=1))
            for n, one in enumerate(jobs.due(conn, NOON), start=1)
        ]
        assert executions.plan_due(conn, plans, NOON).rows == 3  # the busy one's slot is taken

    plans = explained(full, work)
    assert any("execution_count" in told and told.startswith("UPDATE") for told in plans)
    no_full_scan(plans)


def test_what_is_known_by_its_id_is_not_searched_among_all_that_runs(postgres_db: Database) -> None:
    """As it grew: the statistics tell of a table in which hardly anything ever ran."""
    db = as_new(postgres_db)
    job = a_job(overlapping=OverlapPolicy(overlap=Overlap.ALLOW))
    add(db, job)
    analyse(db)
    plan(db, *(an_execution(job=job, scheduled_for=NOON - n * SECOND / 10) for n in range(600)))
    held = {one.execution.id: one.execution.lease_token or "" for one in claim(db, limit=600)}
    assert len(held) == 600
    order = ClaimOrder(instance_id="i", limit=600, now=NOON, lease=LEASE)
    plans = [
        *explained(db, lambda conn: executions.renew(conn, held, NOON + LEASE)),
        *explained(db, lambda conn: executions.claim_these(conn, order, list(held))),
        *explained(db, lambda conn: ask_to_stop(conn, list(held), "somebody", NOON)),
    ]
    by_id = [told for told in plans if "executions.id = ANY" in told]
    assert len(by_id) >= 4
    for told in by_id:
        assert "executions_open_idx" not in told


@pytest.mark.parametrize("next_run_at", [None, NOON + MINUTE])
def test_what_is_open_of_jobs_is_not_searched_among_all_that_is_queued(
    postgres_db: Database, next_run_at: datetime | None
) -> None:
    """As it grew: the statistics tell of a table in which hardly anything ever waited."""
    db = as_new(postgres_db)
    made = [a_job(next_run_at=next_run_at) for _ in range(300)]
    add(db, *made)
    analyse(db)
    plan(db, *(an_execution(job=job, scheduled_for=NOON + n * SECOND) for job in made for n in range(5)))
    of: dict[str, Job] = {job.id: job for job in made[:100]}
    told = explained(db, lambda conn: facts.open_work(conn, of))[0]
    walks = [line.strip() for line in told.splitlines() if "Index Cond" in line]
    assert len(walks) == 4
    for walk in walks:
        assert "state = " in walk
        assert "job_id = " in walk
    no_full_scan([told])
