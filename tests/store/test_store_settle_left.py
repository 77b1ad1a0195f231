"""Ends of jobs that somebody else holds are left for later: who waited for them would hold the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy import Connection

from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job, Overlap, OverlapPolicy
from noonday.ports import Claim
from noonday.store import executions, history, jobs
from noonday.store.database import Database
from noonday.store.executions import Ending, Ends
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import MINUTE, add, claim, ending, plan

ALLOW = OverlapPolicy(overlap=Overlap.ALLOW)


@contextmanager
def held(url: str, job: Job) -> Iterator[None]:
    """Another transaction has the job in its hands, as a planner or a person may."""
    other = Database(url)
    taken, over = threading.Event(), threading.Event()

    def hold(conn: Connection) -> None:
        conn.exec_driver_sql("SELECT 1 FROM jobs WHERE id = %s FOR NO KEY UPDATE", (job.id,))
        taken.set()
        assert over.wait(60)

    holder = threading.Thread(target=lambda: other.write_now(hold))
    holder.start()
    try:
        assert taken.wait(30)
        yield
    finally:
        over.set()
        holder.join(30)
        other.close_now()


def told(claimed: Claim) -> Ending:
    return replace(ending(claimed), claim=claimed)


def settle(db: Database, endings: list[Ending]) -> Ends:
    return db.write_now(lambda conn: executions.settle_held(conn, endings, NOON + MINUTE, wait=False))


def state_of(db: Database, claimed: Claim) -> ExecutionState:
    (run,) = db.read_now(lambda conn: history.page(conn, claimed.job.id)).items
    return run.state


def two_running(db: Database) -> tuple[Claim, Claim]:
    one, other = a_job(), a_job()
    add(db, one, other)
    plan(db, an_execution(job=one), an_execution(job=other))
    by_job = {claimed.job.id: claimed for claimed in claim(db)}
    return by_job[one.id], by_job[other.id]


def test_the_ends_of_jobs_that_are_free_do_not_wait_for_the_others(
    postgres_db: Database, postgres_url: str
) -> None:
    db = postgres_db
    free, busy = two_running(db)
    endings = [told(free), told(busy)]
    with held(postgres_url, busy.job):
        assert settle(db, endings) == ({free.execution.id}, {busy.execution.id})
        assert state_of(db, free) is ExecutionState.COMPLETED
        assert state_of(db, busy) is ExecutionState.RUNNING
    assert settle(db, [told(busy)]) == ({busy.execution.id}, set())
    assert state_of(db, busy) is ExecutionState.COMPLETED


def test_where_none_is_free_it_waits(postgres_db: Database, postgres_url: str) -> None:
    db = postgres_db
    free, busy = two_running(db)
    settle(db, [told(free)])
    made: list[Ends] = []
    waiting = threading.Thread(target=lambda: made.append(settle(db, [told(busy)])))
    with held(postgres_url, busy.job):
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
    waiting.join(30)
    assert made == [({busy.execution.id}, set())]


def test_an_end_is_left_while_somebody_holds_the_job_that_follows(
    postgres_db: Database, postgres_url: str
) -> None:
    """Otherwise the follower would miss it."""
    db = postgres_db
    parent, free = a_job(), a_job()
    follower = a_job(on_success_of=(parent.id,), overlapping=ALLOW)
    add(db, parent, free, follower)
    plan(db, an_execution(job=parent), an_execution(job=free))
    by_job = {claimed.job.id: claimed for claimed in claim(db)}
    ended, other = by_job[parent.id], by_job[free.id]
    with held(postgres_url, follower):
        assert settle(db, [told(ended), told(other)]) == ({other.execution.id}, {ended.execution.id})
    assert settle(db, [told(ended)]) == ({ended.execution.id}, set())
    assert db.read_now(lambda conn: history.page(conn, follower.id)).total == 1


def test_a_stale_end_is_neither_settled_nor_left(postgres_db: Database) -> None:
    free, busy = two_running(postgres_db)
    stolen = replace(told(busy), token="stolen")
    assert settle(postgres_db, [told(free), stolen]) == ({free.execution.id}, set())


def test_the_end_of_a_job_that_is_gone_is_refused_by_whoever_waits(db: Database) -> None:
    """Until then nobody can tell it from one that is held."""
    free, gone = two_running(db)
    db.write_now(lambda conn: jobs.remove(conn, gone.job.id))
    assert settle(db, [told(free), told(gone)]) == ({free.execution.id}, {gone.execution.id})
    assert settle(db, [told(gone)]) == (set(), set())
