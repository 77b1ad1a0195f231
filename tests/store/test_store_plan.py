from __future__ import annotations

from datetime import timedelta

from noonday.domain.execution import Cause, ExecutionState, SkipReason
from noonday.store import history
from noonday.store.database import Database
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import MINUTE, add, look, plan, sql


def test_it_keeps_what_was_planned(db: Database) -> None:
    job = a_job()
    add(db, job)
    execution = an_execution(
        job=job,
        covers_from=NOON - MINUTE,
        available_at=NOON + timedelta(seconds=1.5),
        cause=Cause.MANUAL,
        triggered_by="ada",
        config={"n": 1},
        trace_id="t-1",
    )
    assert plan(db, execution) == 1
    assert look(db, execution) == execution


def test_a_slot_is_filled_once(db: Database) -> None:
    job = a_job()
    add(db, job)
    first, again = an_execution(job=job), an_execution(job=job)
    assert plan(db, first) == 1
    assert plan(db, again, an_execution(job=job, scheduled_for=NOON + MINUTE)) == 1
    assert db.read_now(lambda conn: history.page(conn, job.id)).total == 2
    assert look(db, first).id == first.id


def test_another_cause_is_another_slot(db: Database) -> None:
    job = a_job()
    add(db, job)
    assert plan(db, an_execution(job=job), an_execution(job=job, cause=Cause.MANUAL)) == 2


def test_runs_are_numbered_per_job_and_lapses_are_not(db: Database) -> None:
    one, two = a_job(), a_job()
    add(db, one, two)
    lapse = an_execution(
        job=one,
        scheduled_for=NOON - MINUTE,
        state=ExecutionState.SKIPPED,
        available_at=None,
        skip_reason=SkipReason.WINDOW,
        through_at=NOON,
        skipped_count=7,
        completed_at=NOON,
    )
    later = [an_execution(job=one, scheduled_for=NOON + n * MINUTE) for n in range(3)]
    other = an_execution(job=two)
    assert plan(db, lapse, later[0], other, later[1]) == 4
    assert plan(db, later[2]) == 1
    assert [look(db, execution).number for execution in later] == [1, 2, 3]
    assert look(db, other).number == 1
    kept = look(db, lapse)
    assert (kept.number, kept.skip_reason, kept.through_at, kept.skipped_count) == (
        0,
        SkipReason.WINDOW,
        NOON,
        7,
    )


def test_nothing_is_planned_for_a_job_that_is_gone(db: Database) -> None:
    job = a_job()
    add(db, job)
    assert plan(db, an_execution(), an_execution(job=job)) == 1
    assert sql(db, "SELECT count(*) AS n FROM executions") == [{"n": 1}]


def test_planning_nothing_is_nothing(db: Database) -> None:
    assert plan(db) == 0
