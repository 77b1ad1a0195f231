from __future__ import annotations

from datetime import timedelta

from noonday.domain.execution import SkipReason, WaitReason
from noonday.domain.job import Overlap, OverlapPolicy, RetryPolicy
from noonday.domain.outcome import Parked
from noonday.domain.target import PythonTarget
from noonday.store import executions
from noonday.store.database import Database
from tests.factories import NOON, a_job
from tests.store.store_steps import BAD, MINUTE, SECOND, add, claim, end, look, plan_run, run, sql

LATER = NOON + timedelta(hours=1)


def test_a_parked_execution_is_set_going_by_whoever_knows_the_task(db: Database) -> None:
    one, two = a_job(target=PythonTarget(task="one")), a_job(target=PythonTarget(task="two"))
    add(db, one, two)
    plan_run(db, one)
    plan_run(db, two)
    for claimed in claim(db):
        end(db, claimed, Parked(detail="unknown"))
    assert db.write_now(lambda conn: executions.unpark(conn, [])) == 0
    assert db.write_now(lambda conn: executions.unpark(conn, ["one", "three"])) == 1
    (again,) = claim(db, NOON + SECOND)
    assert again.job.id == one.id
    assert db.write_now(lambda conn: executions.unpark(conn, {"one"})) == 0


def test_the_sweep_finds_a_missed_turn(db: Database) -> None:
    job = a_job(overlapping=OverlapPolicy(overlap=Overlap.QUEUE))
    add(db, job)
    plan_run(db, job)
    claim(db)
    waiting = plan_run(db, job, NOON + SECOND)
    claim(db, NOON + SECOND)
    assert db.write_now(lambda conn: executions.rearm_waiting(conn, LATER)) == 0
    sql(db, "UPDATE executions SET state = 'cancelled' WHERE state = 'running'")
    assert db.write_now(lambda conn: executions.rearm_waiting(conn, LATER)) == 1
    (claimed,) = claim(db, LATER)
    assert claimed.execution.id == waiting.id


def test_the_sweep_finds_a_missed_parent(db: Database) -> None:
    parent = a_job()
    child = a_job(depends_on=(parent.id,))
    add(db, parent, child)
    waiting = plan_run(db, child, covers_from=NOON - MINUTE)
    claim(db)
    assert look(db, waiting).wait_reason is WaitReason.DEPENDENCY
    assert db.write_now(lambda conn: executions.rearm_waiting(conn, NOON)) == 0
    moment = NOON.isoformat(" ")
    success = f"last_success_for = '{moment}', last_success_at = '{moment}'"
    sql(db, f"UPDATE jobs SET {success} WHERE id = '{parent.id}'")
    assert db.write_now(lambda conn: executions.rearm_waiting(conn, NOON + SECOND)) == 1
    (claimed,) = claim(db, NOON + SECOND)
    assert claimed.execution.id == waiting.id


def test_the_children_of_a_retried_parent_are_set_going_by_hand_too(db: Database) -> None:
    parent = a_job(retry=RetryPolicy(max_retries=0))
    child = a_job(depends_on=(parent.id,))
    add(db, parent, child)
    skipped = plan_run(db, child, NOON + SECOND, covers_from=NOON - MINUTE)
    run(db, parent, NOON, BAD)
    claim(db, NOON + SECOND)
    assert look(db, skipped).skip_reason is SkipReason.DEPENDENCY
    moment = NOON.isoformat(" ")
    success = f"last_success_for = '{moment}', last_success_at = '{moment}'"
    sql(db, f"UPDATE jobs SET {success} WHERE id = '{parent.id}'")
    assert db.write_now(lambda conn: executions.rearm_dependants(conn, parent.id, NOON + SECOND)) == 1
    (claimed,) = claim(db, NOON + SECOND)
    assert claimed.execution.id == skipped.id
