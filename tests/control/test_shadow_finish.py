"""Both engines compared in figures and words, and the end of the migration."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import text, update

from noonday.control.engines import Choice, Engines, verdict
from noonday.domain.errors import Conflict
from noonday.domain.execution import ExecutionState, Road
from noonday.domain.job import JobState
from noonday.domain.outcome import Completed, Failed
from noonday.domain.schedule import Cron, Interval, IntervalUnit, Manual
from noonday.store import jobs, tables
from noonday.store.database import Database
from noonday.store.engine_versions import Figures, Lateness
from noonday.testing import ManualInstance
from tests.control.desk import Desk

MINUTELY = Cron(expression="* * * * *")
INSERT = "INSERT INTO jobs (name, url, cron_expression) VALUES ('plain', 'https://a.example', '0 2 * * *')"


@pytest.fixture
def engines(desk: Desk) -> Engines:
    return Engines(desk.db, desk.clock)


async def sql(db: Database, statement: str) -> None:
    await db.write(lambda conn: conn.execute(text(statement)))


class TestFigures:
    async def test_it_counts_what_each_road_did_and_how_late(self, desk: Desk, engines: Engines) -> None:
        await desk.new(schedule=MINUTELY)
        fast = await desk.new(schedule=MINUTELY, scheduler_version=2)
        await desk.new(schedule=Manual(), scheduler_version=2)
        for late in (0.5, 2.0, 1.0):
            desk.advance(minutes=1)
            await desk.plan()
            desk.advance(seconds=late)
            for run in await desk.claim():
                desk.clock.at += timedelta(milliseconds=100)
                good = run.road is Road.DATABASE or late != 1.0
                await desk.settle(run, Completed() if good else Failed(error="no", retryable=False))
            desk.advance(seconds=-late - 0.2)
        desk.advance(minutes=1)
        await desk.plan(seconds=60)
        await desk.jobs.pause(fast.id)
        found = (await engines.compare()).engines
        one, two = found[Road.DATABASE], found[Road.STREAMS]
        assert (one.jobs, one.armed, two.jobs, two.armed) == (1, 1, 2, 0)
        assert (one.completed, one.failed, one.waiting, one.running) == (3, 0, 2, 0)
        assert (two.completed, two.failed, two.skipped, two.waiting) == (2, 1, 1, 0)
        assert one.failure_rate == 0
        assert two.failure_rate == pytest.approx(1 / 3)
        assert one.lateness is not None
        assert one.lateness.p50 == pytest.approx(timedelta(seconds=1), abs=timedelta(milliseconds=250))
        assert one.lateness.max == pytest.approx(timedelta(seconds=2), abs=timedelta(milliseconds=250))
        assert one.took is not None
        assert timedelta(0) < one.took < timedelta(seconds=1)

    async def test_a_retried_run_is_as_late_as_its_first_attempt(self, desk: Desk, engines: Engines) -> None:
        await desk.new(schedule=MINUTELY)
        desk.advance(minutes=1)
        await desk.plan()
        for _ in range(2):
            desk.advance(seconds=1)
            [run] = await desk.claim()
            await desk.settle(run, Failed(error="again"))
            desk.advance(minutes=5)
        found = (await engines.compare()).engines[Road.DATABASE]
        assert found.lateness is not None
        assert found.lateness.max == pytest.approx(timedelta(seconds=1), abs=timedelta(milliseconds=50))

    async def test_it_looks_back_as_far_as_asked(self, desk: Desk, engines: Engines) -> None:
        job = await desk.new(schedule=Manual())
        await desk.jobs.force_run(job.id)
        [run] = await desk.claim()
        await desk.settle(run, Completed())
        desk.advance(hours=3)
        assert (await engines.compare(hours=4)).engines[Road.DATABASE].completed == 1
        assert (await engines.compare(hours=2)).engines[Road.DATABASE].completed == 0

    async def test_an_empty_database_has_nothing_to_compare(self, engines: Engines) -> None:
        found = await engines.compare()
        assert set(found.engines.values()) == {Figures()}


def figures(**changes: Any) -> Figures:
    second = timedelta(seconds=1)
    late = Lateness(p50=second / 10, p95=second / 5, p99=second / 2, max=second)
    return replace(Figures(jobs=5, completed=100, lateness=late), **changes)


LATE = Lateness(*(timedelta(seconds=n) for n in (1, 2, 3, 4)))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (figures(), figures(), "at least as well"),
        (figures(jobs=0), figures(), "no job is left on version 1"),
        (figures(), figures(jobs=0), "no job is on version 2 yet"),
        (figures(), figures(completed=3), "too early to tell"),
        (figures(), figures(failed=20), "fails more often (16.7% against 0.0%)"),
        (figures(failed=20), figures(), "at least as well"),
        (figures(), figures(lateness=LATE), "starts later (p95 2.00 s against 0.20 s)"),
        (figures(lateness=LATE), figures(), "at least as well"),
        (figures(completed=2), figures(lateness=LATE, failed=50), "at least as well"),
    ],
)
def test_it_says_in_words_how_they_compare(old: Figures, new: Figures, words: str) -> None:
    assert words in verdict(old, new, finished=False)
    assert "finished" in verdict(old, new, finished=True)


class TestTheEnd:
    async def test_it_refuses_while_jobs_remain_and_names_them(self, desk: Desk, engines: Engines) -> None:
        made = [await desk.new() for _ in range(12)]
        with pytest.raises(Conflict, match="12 jobs are still of version 1") as refused:
            await engines.finish("alice")
        assert made[0].name in str(refused.value)
        assert str(refused.value).endswith("and 2 more")
        assert (await engines.compare()).finished_at is None
        await engines.move(Choice(all=True), Road.STREAMS)
        assert await engines.finish("alice") == desk.clock.now()
        assert (await engines.compare()).finished_at == desk.clock.now()

    async def test_again_changes_nothing_and_it_can_be_undone(self, desk: Desk, engines: Engines) -> None:
        first = await engines.finish("alice")
        desk.advance(hours=1)
        assert await engines.finish("bob") == first
        desk.advance(seconds=1)
        assert await engines.reopen("bob")
        assert not await engines.reopen("bob")
        assert (await engines.compare()).finished_at is None
        assert [(one.actor, one.action, one.kind) for one in await desk.audit("2")] == [
            ("alice", "finish", "engine"),
            ("bob", "reopen", "engine"),
        ]
        assert (await desk.new()).scheduler_version == 1

    async def test_whatever_comes_as_version_1_becomes_version_2(self, desk: Desk, engines: Engines) -> None:
        await engines.finish()
        made = await desk.new(scheduler_version=1)
        assert made.scheduler_version == 2
        back = await desk.jobs.change(made.id, lambda job: replace(job, scheduler_version=1))
        assert (back.scheduler_version, back.revision) == (2, made.revision)
        with pytest.raises(Conflict, match="engine finish --undo"):
            await engines.move(Choice(all=True), Road.DATABASE)

    async def test_a_plain_insert_becomes_version_2_by_the_watcher(self, db_url: str) -> None:
        async with ManualInstance(db_url) as scheduler:
            await Engines(scheduler.db, scheduler.clock).finish()
            await sql(scheduler.db, INSERT)
            await sql(
                scheduler.db,
                INSERT.replace("'plain'", "'one', 1").replace("name,", "name, scheduler_version,"),
            )
            await scheduler.tick(seconds=1)
            assert [(await scheduler.jobs.get(name)).scheduler_version for name in ("plain", "one")] == [2, 2]
            assert (await scheduler.jobs.get("plain")).state is JobState.SCHEDULED

    async def test_a_plain_update_to_version_1_is_put_right(self, db_url: str) -> None:
        async with ManualInstance(db_url) as scheduler:

            @scheduler.task
            async def work() -> None:
                pass

            every = Interval(count=1, unit=IntervalUnit.SECONDS)
            await scheduler.add("steady", every, "work", scheduler_version=2)
            await Engines(scheduler.db, scheduler.clock).finish()
            await scheduler.tick(seconds=2)
            await sql(scheduler.db, "UPDATE jobs SET scheduler_version = 1")
            await scheduler.tick(seconds=3)
            assert (await scheduler.jobs.get("steady")).scheduler_version == 2
            rows = await scheduler.history("steady")
            assert {row.state for row in rows} <= {ExecutionState.COMPLETED, ExecutionState.QUEUED}
            assert len({row.scheduled_for for row in rows}) == len(rows) >= 6

    async def test_the_column_itself_knows_on_postgresql(self, postgres_db: Database) -> None:
        desk = Desk(postgres_db)
        engines = Engines(desk.db, desk.clock)
        await engines.finish()
        await sql(postgres_db, INSERT)
        assert await _version(postgres_db) == 2
        await engines.reopen()
        await sql(postgres_db, "DELETE FROM jobs")
        await sql(postgres_db, INSERT)
        assert await _version(postgres_db) == 1

    async def test_a_row_that_cannot_be_read_can_move_too(self, desk: Desk, engines: Engines) -> None:
        job = await desk.new()
        bad = update(tables.jobs).values(timezone="Nowhere/Land")
        await desk.db.write(lambda conn: conn.execute(bad))
        await desk.db.write(jobs.changed)
        assert (await engines.move(Choice(all=True), Road.STREAMS)).names == (job.name,)
        await engines.finish()


async def _version(db: Database) -> object:
    query = tables.jobs.select().with_only_columns(tables.jobs.c.scheduler_version)
    return await db.read(lambda conn: conn.execute(query).scalar())
