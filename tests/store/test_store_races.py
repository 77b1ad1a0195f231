"""Several claimers at once: nobody gets what another has, and nothing is left."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

from sqlalchemy import Connection

from noonday.domain.job import Job, Overlap, OverlapPolicy
from noonday.store import executions, history, jobs
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from tests.factories import LEASE, NOON, a_job, an_execution
from tests.store.store_steps import SECOND, add, ending, plan

HERE = Path(__file__).parent
MANY = 2_000


def fill(db: Database, runs: int, per_job: int = 20) -> list[Job]:
    policy = OverlapPolicy(overlap=Overlap.ALLOW)
    made = [a_job(overlapping=policy) for _ in range(runs // per_job)]

    def work(conn: Connection) -> None:
        for job in made:
            jobs.add(conn, job)
        rows = [
            an_execution(job=job, scheduled_for=NOON - n * SECOND) for job in made for n in range(per_job)
        ]
        assert executions.plan(conn, rows) == runs

    db.write_now(work)
    return made


def test_two_claimers_never_get_the_same_execution(db: Database, db_url: str) -> None:
    fill(db, MANY)
    other = Database(db_url)
    got: list[str] = []
    start = threading.Barrier(4)

    def claimer(name: str, mine: Database) -> None:
        order = ClaimOrder(instance_id=name, limit=50, now=NOON, lease=LEASE)
        start.wait(10)
        while True:
            claims = mine.write_now(lambda conn: executions.claim(conn, order))
            got.extend(claimed.execution.id for claimed in claims)
            if not claims and mine.read_now(executions.next_available_at) is None:
                return

    threads = [
        threading.Thread(target=claimer, args=(f"i{n}", mine))
        for n, mine in enumerate((db, db, other, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    other.close_now()
    assert len(got) == MANY
    assert max(Counter(got).values()) == 1


def test_two_processes_on_one_database_share_the_work(db: Database, db_url: str) -> None:
    fill(db, MANY // 2)
    env = {"PYTHONPATH": str(HERE.parents[1]), "PATH": ""}
    processes = [
        subprocess.Popen(
            [sys.executable, HERE / "claimer.py", db_url, name], stdout=subprocess.PIPE, text=True, env=env
        )
        for name in ("one", "two")
    ]
    printed = [process.communicate(timeout=100)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert max(Counter(printed[0] + printed[1]).values()) == 1
    assert len(printed[0]) + len(printed[1]) == MANY // 2
    done = db.read_now(lambda conn: history.page(conn, status="completed"))
    assert done.total == MANY // 2


def test_no_overlap_however_many_claim(db: Database, db_url: str) -> None:
    """Promise 4: at no moment do more run than the job allows."""
    job = a_job(overlapping=OverlapPolicy(max_instances=2, overlap=Overlap.QUEUE))
    add(db, job)
    plan(db, *(an_execution(job=job, scheduled_for=NOON - n * SECOND) for n in range(60)))
    other = Database(db_url)
    at_once, most, finished = 0, 0, 0
    guard = threading.Lock()

    def claimer(name: str, mine: Database) -> None:
        nonlocal at_once, most, finished
        order = ClaimOrder(instance_id=name, limit=5, now=NOON, lease=LEASE)
        while finished < 60:
            for claimed in mine.write_now(lambda conn: executions.claim(conn, order)):
                with guard:
                    at_once += 1
                    most = max(most, at_once)
                with guard:
                    at_once -= 1
                mine.write_now(lambda conn, c=claimed: executions.settle(conn, [ending(c)], NOON))  # type: ignore[misc]
                with guard:
                    finished += 1

    threads = [
        threading.Thread(target=claimer, args=(f"i{n}", mine)) for n, mine in enumerate((db, other, other))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    other.close_now()
    assert finished == 60
    assert 1 <= most <= 2
    assert db.read_now(lambda conn: history.page(conn, job.id, status="completed")).total == 60


def test_two_planners_fill_a_slot_once(db: Database, db_url: str) -> None:
    job = a_job()
    add(db, job)
    other = Database(db_url)
    start = threading.Barrier(2)
    made: list[int] = []

    def planner(mine: Database) -> None:
        rows = [an_execution(job=job, scheduled_for=NOON + n * SECOND) for n in range(50)]
        start.wait(10)
        made.append(plan(mine, *rows))

    threads = [threading.Thread(target=planner, args=(mine,)) for mine in (db, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    other.close_now()
    assert sum(made) == 50
    assert db.read_now(lambda conn: history.page(conn, job.id)).total == 50


def test_settlers_of_parents_and_followers_do_not_block_each_other(db: Database, db_url: str) -> None:
    parents = [a_job(overlapping=OverlapPolicy(overlap=Overlap.ALLOW)) for _ in range(10)]
    allow = OverlapPolicy(overlap=Overlap.ALLOW)
    followers = [a_job(on_success_of=(p.id, parents[0].id), overlapping=allow) for p in reversed(parents)]
    add(db, *parents, *followers)
    plan(db, *(an_execution(job=j, scheduled_for=NOON - n * SECOND) for j in parents for n in range(10)))
    other = Database(db_url)

    def worker(name: str, mine: Database) -> None:
        order = ClaimOrder(instance_id=name, limit=7, now=NOON, lease=LEASE)
        while True:
            claims = mine.write_now(lambda conn: executions.claim(conn, order))
            endings = [ending(claimed) for claimed in claims]
            mine.write_now(lambda conn, e=endings: executions.settle(conn, e, NOON))  # type: ignore[misc]
            if not claims and mine.read_now(executions.next_available_at) is None:
                return

    threads = [threading.Thread(target=worker, args=(f"i{n}", m)) for n, m in enumerate((db, db, other))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    other.close_now()
    assert not any(thread.is_alive() for thread in threads)
    fired = db.read_now(lambda conn: history.page(conn, followers[0].id)).total
    assert fired == 10
