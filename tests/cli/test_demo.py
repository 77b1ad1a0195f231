"""`noonday demo`: what it fills a database with, and that it leaves nothing behind."""

from __future__ import annotations

from datetime import timedelta
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from noonday.cli.demo.filling import Filling
from noonday.cli.demo.fleet import FLEET
from noonday.cli.demo.target import answering
from noonday.control.loads import Loads
from noonday.control.services import ServiceUrls
from noonday.domain.execution import ExecutionState, SkipReason
from noonday.settings import load
from noonday.store import audit, deliveries, history, jobs
from noonday.store.database import Database
from noonday.store.jobs import JobFilter
from tests.cli.terminal import Terminal
from tests.factories import a_job

BASE = "http://127.0.0.1:9"


async def test_it_fills_every_job_with_a_past_and_a_future(sqlite_db: Database, sqlite_url: str) -> None:
    async with Filling(load(database_url=sqlite_url)) as filling:
        assert await filling.fill(BASE) == len(FLEET)
    found = await sqlite_db.read(lambda conn: jobs.find(conn, JobFilter(tag="demo"), 100, 0, "name"))
    assert {job.name for job in found.items} == {member.name for member in FLEET}
    ran = [job for job in found.items if job.last_status is not None]
    assert len(ran) > len(FLEET) - 8  # all but those that run once a month, or not at all
    runs = (await sqlite_db.read(lambda conn: history.page(conn, limit=20_000))).items
    states = {run.state for run in runs}
    assert {ExecutionState.COMPLETED, ExecutionState.FAILED, ExecutionState.SKIPPED} <= states
    assert {SkipReason.OVERLAP, SkipReason.WINDOW, SkipReason.SKIPPED} <= {run.skip_reason for run in runs}
    assert any(job.paused_until for job in found.items)
    assert (await sqlite_db.read(deliveries.page)).total > 0
    ended = [run for run in runs if run.state is ExecutionState.COMPLETED and run.started_at]
    assert all(run.completed_at and run.started_at < run.completed_at for run in ended if run.started_at)


async def test_the_past_has_the_pace_of_the_future_which_lies_ahead(
    sqlite_db: Database, sqlite_url: str
) -> None:
    async with Filling(load(database_url=sqlite_url)) as filling:
        now = filling.clock.now()  # before it fills: a minute may pass meanwhile
        await filling.fill(BASE)
        week = Loads(sqlite_db, filling.clock)
        past = await week.past(now - timedelta(days=7), now)
        coming = await week.coming(now + timedelta(days=7))
    found = await sqlite_db.read(lambda conn: jobs.find(conn, JobFilter(tag="demo"), 100, 0, "name"))
    assert not [job.name for job in found.items if job.armed and job.next_run_at and job.next_run_at < now]
    days = [0] * 7
    for hour, counted in past.hours.items():
        days[min((now - hour) // timedelta(days=1), 6)] += counted.starts
    assert min(days) > 0.8 * max(days)
    # Runs that follow others, and those by hand and by calls, are in the past alone.
    assert 0.75 * sum(days) < sum(coming.starts.values()) < 1.05 * sum(days)


async def test_it_adds_nothing_twice_and_removes_all_it_added(db: Database, db_url: str) -> None:
    own = a_job(name="mine", tags=("demo",))
    await db.write(lambda conn: jobs.add(conn, own))
    async with Filling(load(database_url=db_url)) as filling:
        await filling.fill(BASE)
        assert await filling.fill("http://127.0.0.1:10") == 0
        feed = await filling.show.jobs.get("feed-weather")
        assert getattr(feed.target, "url", "") == "http://127.0.0.1:10/feeds/weather.xml"
        assert await filling.show.others() == 1
        assert await filling.remove() == len(FLEET)
        services = ServiceUrls(db, filling.clock)
        assert await services.everyone() == []
        assert (await db.read(history.page)).total == 0
        assert (await db.read(deliveries.page)).total == 0
        assert (await db.read(audit.page)).total == 0
    left = await db.read(lambda conn: jobs.find(conn, JobFilter(), 100, 0, "name"))
    assert [job.name for job in left.items] == ["mine"]


def test_its_services_answer_as_jobs_expect() -> None:
    with answering() as base:
        with urlopen(f"{base}/feeds/weather.xml", timeout=10) as answer:
            assert b'"success": true' in answer.read()
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{base}/nowhere", timeout=10)
        assert refused.value.code == 404
        refused.value.close()


def test_it_says_how_many_it_removed(cli: Terminal) -> None:
    assert cli("demo", "--remove").code == 6  # there is no database to remove it from
    own = ("--db", "sqlite:///own.db")
    assert cli("migrate", *own).code == 0
    answer = cli("demo", "--remove", *own)
    assert (answer.code, answer.err.strip()) == (0, "removed 0 jobs of the demonstration")


def test_it_stays_on_loopback_without_sign_in(cli: Terminal) -> None:
    answer = cli("demo", "--host", "0.0.0.0", "--allow-open")
    assert answer.code == 2
    assert "stays on loopback" in answer.err
