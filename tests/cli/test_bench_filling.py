"""The jobs and runs that benchmarks are made of: as many as asked for, and each of them runs."""

from __future__ import annotations

import asyncio

import pytest

from bench import crowd
from noonday.cli.benching import filling
from noonday.cli.benching.machine import running
from noonday.cli.benching.places import Place
from noonday.clock import wall_clock
from noonday.store import jobs
from noonday.store.database import Database
from noonday.store.jobs import JobFilter


async def test_it_runs_every_missed_fire(sqlite_url: str) -> None:
    async with running(Place(url=sqlite_url, words=""), slots=4) as machine:
        made = list(filling.missed(machine.kind, wall_clock(), 45, each=20))
        assert [job.timing.max_runs for job in made] == [20, 20, 5]
        await asyncio.to_thread(filling.add, machine.db, made)
        await machine.all_started(45, within=60)
        await machine.all_settled(45)
    assert len(machine.marks) == 45


async def test_it_runs_what_waits_in_the_queue(sqlite_url: str) -> None:
    made, runs = filling.waiting(filling.Kind(), 25, 4)
    assert len({(run.job_id, run.scheduled_for) for run in runs}) == 25
    assert {run.job_id for run in runs} == {job.id for job in made}
    db = Database(sqlite_url)
    await asyncio.to_thread(filling.add, db, made, runs)
    await db.close()
    async with running(Place(url=sqlite_url, words=""), slots=4) as machine:
        await machine.all_started(25, within=60)
        await machine.all_settled(25)
    assert len(machine.marks) == 25


@pytest.mark.parametrize("count", [1, 50])
def test_it_stores_a_crowd_that_sleeps(db_url: str, count: int) -> None:
    db = Database(db_url)
    now = wall_clock()
    crowd.add(db, count)
    found = db.read_now(lambda conn: jobs.find(conn, JobFilter(), 100, 0, "name"))
    db.close_now()
    assert found.total == count
    assert len({job.name for job in found.items}) == count
    assert len({job.id for job in found.items}) == count
    assert all(job.next_run_at is not None and job.next_run_at > now for job in found.items)
