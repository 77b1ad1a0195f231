from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import Connection

from noonday.domain.execution import Cause
from noonday.domain.job import Job, JobState
from noonday.domain.schedule import Cron
from noonday.store import executions, job_cursors, jobs
from noonday.store.database import Database
from noonday.store.jobs import Advance, BadRow
from tests.factories import NOON, a_job, an_id
from tests.store.store_steps import MINUTE, SECOND, add, claim, end, job_now, plan_run, sql


def due(db: Database, limit: int = 10) -> list[str]:
    return [one.job.id for one in db.write_now(lambda conn: jobs.due(conn, NOON, limit))]


def test_due_jobs_come_in_order_of_their_time(db: Database) -> None:
    late, soon = a_job(next_run_at=NOON), a_job(next_run_at=NOON - MINUTE)
    add(db, late, soon, a_job(next_run_at=NOON + SECOND), a_job(next_run_at=None))
    assert due(db) == [soon.id, late.id]
    assert due(db, limit=1) == [soon.id]


@pytest.mark.parametrize(
    "changes", [{"paused": True}, {"enabled": False}, {"state": JobState.CANCELLED}], ids=str
)
def test_a_job_that_is_not_armed_is_not_due(db: Database, changes: dict[str, object]) -> None:
    add(db, a_job(next_run_at=NOON, **changes))
    assert due(db) == []
    assert db.read_now(jobs.next_due_at) is None


def test_it_tells_when_the_next_job_is_due(db: Database) -> None:
    assert db.read_now(jobs.next_due_at) is None
    add(db, a_job(next_run_at=NOON + MINUTE), a_job(next_run_at=NOON), a_job(next_run_at=None))
    assert db.read_now(jobs.next_due_at) == NOON


def test_advance_moves_the_cursor(db: Database) -> None:
    one, two = a_job(next_run_at=NOON), a_job(next_run_at=NOON)
    add(db, one, two)
    changes = [
        Advance(job_id=one.id, next_run_at=NOON + MINUTE, fire_count=1, state=JobState.RUNNING),
        Advance(job_id=two.id, next_run_at=None, fire_count=2),
    ]
    db.write_now(lambda conn: jobs.advance(conn, changes))
    after = job_now(db, one)
    assert (after.next_run_at, after.fire_count, after.state) == (NOON + MINUTE, 1, JobState.RUNNING)
    after = job_now(db, two)
    assert (after.next_run_at, after.fire_count, after.state) == (None, 2, JobState.SCHEDULED)


def test_two_planners_do_not_get_the_same_job(postgres_db: Database) -> None:
    """On SQLite the second planner waits for the first one's whole transaction."""
    add(postgres_db, *(a_job(next_run_at=NOON) for _ in range(4)))

    def first(conn: Connection) -> tuple[set[str], set[str]]:
        mine = {str(one.job.id) for one in jobs.due(conn, NOON, 2)}
        return mine, set(due(postgres_db))

    mine, theirs = postgres_db.write_now(first)
    assert len(mine) == 2
    assert len(theirs) == 2
    assert not mine & theirs


def changed(db: Database) -> list[Job | BadRow]:
    return db.write_now(jobs.changed)


def test_what_the_code_writes_is_not_a_change_behind_its_back(db: Database) -> None:
    job = a_job(next_run_at=NOON)
    add(db, job)
    db.write_now(lambda conn: jobs.save(conn, job))
    plan_run(db, job)
    (claimed,) = claim(db)
    end(db, claimed)
    assert changed(db) == []


def test_a_bad_row_does_not_stop_the_others(db: Database) -> None:
    good, bad = a_job(schedule=Cron(expression="0 1 * * *")), a_job()
    add(db, good, bad)
    sql(db, "UPDATE jobs SET cron_expression = '0 2 * * *'")
    sql(db, f"UPDATE jobs SET cron_expression = 'tomorrow, perhaps' WHERE id = '{bad.id}'")
    found = {row.id: row for row in changed(db)}
    assert isinstance(found[good.id], Job)
    told = found[bad.id]
    assert isinstance(told, BadRow)
    assert "tomorrow, perhaps" in told.error


def test_a_bad_row_is_told_once_and_noted_in_the_row(db: Database) -> None:
    bad = a_job(next_run_at=NOON)
    add(db, bad)
    sql(db, "UPDATE jobs SET timezone = 'Mars/Olympus'")
    assert [row.id for row in changed(db)] == [bad.id]
    assert changed(db) == []
    (row,) = sql(db, "SELECT error FROM jobs")
    assert "Mars/Olympus" in str(row["error"])
    assert due(db) == []
    assert db.read_now(jobs.next_due_at) is None


def test_a_row_that_became_unreadable_leaves_the_planner_alone(db: Database) -> None:
    good, bad = a_job(next_run_at=NOON), a_job(next_run_at=NOON - MINUTE)
    add(db, good, bad)
    # behind the back of the triggers too
    sql(db, f"UPDATE jobs SET overlap = 'sometimes', revision = revision + 1 WHERE id = '{bad.id}'")
    assert due(db) == [good.id]
    assert due(db) == [good.id]
    (row,) = sql(db, f"SELECT error FROM jobs WHERE id = '{bad.id}'")
    assert "sometimes" in str(row["error"])
    assert db.read_now(jobs.next_due_at) == NOON


def test_bad_rows_are_left_out_of_lists(db: Database) -> None:
    good, bad = a_job(), a_job()
    add(db, good, bad)
    sql(db, f"UPDATE jobs SET status = 'confused' WHERE id = '{bad.id}'")
    page = db.read_now(jobs.find)
    assert [job.id for job in page.items] == [good.id]


def test_a_mended_row_is_read_again_with_its_old_cursor(db: Database) -> None:
    job = a_job(next_run_at=NOON)
    add(db, job)
    sql(db, "UPDATE jobs SET timezone = 'Mars/Olympus'")
    changed(db)
    sql(db, "UPDATE jobs SET timezone = 'Europe/Berlin'")
    (mended,) = changed(db)
    assert isinstance(mended, Job)
    assert mended.next_run_at == NOON
    saved = db.write_now(lambda conn: jobs.save(conn, mended))
    assert saved.timing.timezone == "Europe/Berlin"
    assert changed(db) == []
    assert sql(db, "SELECT error FROM jobs") == [{"error": None}]


def test_a_changed_job_is_not_planned_before_the_watcher_saw_it(db: Database) -> None:
    add(db, a_job(next_run_at=NOON))
    sql(db, "UPDATE jobs SET cron_expression = '0 2 * * *'")
    assert due(db) == []
    assert db.read_now(jobs.next_due_at) is None


def test_a_lock_without_a_living_run_is_cleared_and_counted(db: Database) -> None:
    stale, fresh, held = a_job(), a_job(), a_job()
    add(db, stale, fresh, held)
    old = (NOON - timedelta(minutes=10)).isoformat(" ")
    sql(db, f"UPDATE jobs SET lock_token = '{an_id()}', lock_acquired_at = '{old}' WHERE id = '{stale.id}'")
    new = NOON.isoformat(" ")
    sql(db, f"UPDATE jobs SET lock_token = '{an_id()}', lock_acquired_at = '{new}' WHERE id = '{fresh.id}'")
    plan_run(db, held, NOON - timedelta(hours=1), cause=Cause.MANUAL)
    (claimed,) = claim(db, NOON - timedelta(minutes=50))
    cleared = db.write_now(lambda conn: jobs.clear_stale_locks(conn, NOON, timedelta(minutes=5)))
    assert cleared == 1
    locks = {row["id"]: row["lock_token"] for row in sql(db, "SELECT id, lock_token FROM jobs")}
    assert locks[stale.id] is None
    assert locks[fresh.id] is not None
    assert locks[held.id] == claimed.execution.lease_token
    assert db.read_now(lambda conn: executions.get(conn, claimed.execution.id)) == claimed.execution


def test_a_search_for_stale_locks_goes_on_where_it_was(
    postgres_db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_cursors, "WINDOW", 2)
    add(postgres_db, *(a_job() for _ in range(5)))

    def clear() -> int:
        return postgres_db.write_now(lambda conn: jobs.clear_stale_locks(conn, NOON, timedelta(minutes=5)))

    for _ in range(2):
        sql(postgres_db, "UPDATE jobs SET lock_token = 'dead'")
        assert [clear() for _ in range(3)] == [2, 2, 1]
