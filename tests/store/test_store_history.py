from __future__ import annotations

from datetime import timedelta

import pytest

from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job, Retention, RetryPolicy
from noonday.domain.outcome import Failed
from noonday.store import history, jobs, pruning
from noonday.store.database import Database
from tests.factories import NOON, a_job, an_id
from tests.store.store_steps import BAD, MINUTE, OK, add, claim, plan_run, run, sql

DAY = timedelta(days=1)
LAST = Failed(error="no", retryable=False)  # attempts that succeed are not kept apart


def total(db: Database, job: Job | None = None) -> int:
    return db.read_now(lambda conn: history.page(conn, None if job is None else job.id)).total


def test_the_page_of_a_job_is_newest_first(db: Database) -> None:
    job, other = a_job(), a_job()
    add(db, job, other)
    made = [plan_run(db, job, NOON + n * MINUTE) for n in (2, 0, 1)]
    plan_run(db, other)
    page = db.read_now(lambda conn: history.page(conn, job.id, limit=2, offset=0))
    assert [one.id for one in page.items] == [made[0].id, made[2].id]
    assert (page.total, page.limit, page.offset) == (3, 2, 0)
    assert total(db) == 4
    assert db.read_now(lambda conn: history.page(conn, "nobody")).total == 0


def test_the_page_can_be_of_one_state(db: Database) -> None:
    job = a_job(retry=RetryPolicy(max_retries=0))
    add(db, job)
    run(db, job, NOON, OK)
    failed = run(db, job, NOON + MINUTE, BAD).execution
    page = db.read_now(lambda conn: history.page(conn, job.id, status=ExecutionState.FAILED))
    assert page.items == (failed,)
    assert page.total == 1


def test_attempts_of_something_unknown_are_none(db: Database) -> None:
    assert db.read_now(lambda conn: history.attempts(conn, an_id())) == []
    assert db.read_now(lambda conn: history.attempts(conn, "nobody")) == []


def prune(db: Database, runs: int = 100, days: int = 30, limit: int = 500, now: timedelta = 40 * DAY) -> int:
    return db.write_now(lambda conn: history.prune(conn, NOON + now, runs, days, limit))


def ran(db: Database, job: Job, times: int) -> None:
    for n in range(times):
        run(db, job, NOON + n * MINUTE)


def test_the_newest_runs_are_kept(db: Database) -> None:
    job = a_job()
    add(db, job)
    for n in range(5):
        run(db, job, NOON + n * MINUTE, LAST)
    assert prune(db, runs=3) == 2
    left = db.read_now(lambda conn: history.page(conn, job.id)).items
    assert [one.scheduled_for for one in left] == [NOON + n * MINUTE for n in (4, 3, 2)]
    assert sql(db, "SELECT count(*) AS n FROM attempts") == [{"n": 3}]
    assert prune(db, runs=3) == 0


def test_young_runs_are_kept(db: Database) -> None:
    job = a_job()
    add(db, job)
    ran(db, job, 5)
    assert prune(db, runs=3, now=DAY) == 0
    assert total(db, job) == 5


def test_open_executions_are_kept(db: Database) -> None:
    job = a_job()
    add(db, job)
    plan_run(db, job)
    claim(db)
    plan_run(db, job, NOON + MINUTE)
    assert prune(db, runs=0, days=0) == 0
    assert total(db, job) == 2


@pytest.mark.parametrize(
    ("own", "left"),
    [
        (Retention(runs=2), 2),
        (Retention(days=365), 5),
        (Retention(days=1), 0),
        (Retention(runs=2, days=1), 2),
    ],
    ids=str,
)
def test_what_the_job_says_for_itself_wins(db: Database, own: Retention, left: int) -> None:
    job, other = a_job(retention=own), a_job()
    add(db, job, other)
    ran(db, job, 5)
    ran(db, other, 2)
    prune(db, runs=3)
    assert total(db, job) == left
    assert total(db, other) == 2


def test_it_goes_in_small_batches_until_all_is_gone(db: Database) -> None:
    one, two = a_job(), a_job()
    add(db, one, two)
    ran(db, one, 4)
    ran(db, two, 4)
    assert [prune(db, runs=1, limit=4) for _ in range(3)] == [4, 2, 0]
    assert (total(db, one), total(db, two)) == (1, 1)


def test_the_walk_goes_on_where_it_was(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "WINDOW", 2)
    monkeypatch.setattr(pruning, "STEPS", 1)
    made = [a_job() for _ in range(5)]
    add(db, *made)
    for job in made:
        ran(db, job, 2)
    assert [prune(db, runs=1) for _ in range(4)] == [2, 2, 1, 0]
    assert total(db) == 5


def test_the_history_of_a_removed_job_goes_in_the_end(db: Database) -> None:
    job, kept = a_job(), a_job()
    add(db, job, kept)
    ran(db, job, 3)
    ran(db, kept, 1)
    db.write_now(lambda conn: jobs.remove(conn, job.id))
    assert total(db, job) == 3
    assert [prune(db, limit=2, now=DAY) for _ in range(3)] == [2, 1, 0]
    assert total(db, job) == 0
    assert total(db, kept) == 1


def test_a_job_that_came_back_under_its_id_keeps_its_history(db: Database) -> None:
    job = a_job()
    add(db, job)
    ran(db, job, 1)
    db.write_now(lambda conn: jobs.remove(conn, job.id))
    add(db, job)
    assert prune(db, now=DAY) == 0
    assert total(db, job) == 1
