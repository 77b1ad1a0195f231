"""The scheduler inside another program, and the names that the library gives out."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

import noonday
from noonday import Scheduler
from noonday.domain.errors import Invalid, Unavailable
from noonday.domain.execution import ExecutionState
from noonday.domain.job import RetryPolicy
from noonday.domain.schedule import Cron, Interval, IntervalUnit, Manual
from noonday.targets.tasks import TaskRegistry


async def test_it_runs_a_function_in_a_few_lines(db_url: str) -> None:
    ran = asyncio.Event()

    async def refresh() -> str:
        ran.set()
        return "fresh"

    async with Scheduler(db_url, tasks=TaskRegistry()) as scheduler:
        await scheduler.add("refresh", refresh)
        await scheduler.run("refresh")
        async with asyncio.timeout(30):
            await ran.wait()
    async with Scheduler(db_url, tasks=TaskRegistry()) as scheduler:
        [run] = await scheduler.history("refresh")
        assert (run.state, run.result.value) == (ExecutionState.COMPLETED, "fresh")


async def test_it_fires_by_itself_at_its_second(db_url: str) -> None:
    seen: list[int] = []
    enough = asyncio.Event()

    async def tick() -> None:
        seen.append(1)
        if len(seen) == 2:
            enough.set()

    async with Scheduler(db_url, tasks=TaskRegistry()) as scheduler:
        await scheduler.add("tick", tick, every=timedelta(seconds=1))
        async with asyncio.timeout(30):
            await enough.wait()
        runs = [run for run in await scheduler.history("tick") if run.started_at is not None]
    assert len({run.scheduled_for.replace(microsecond=0) for run in runs}) == len(runs) >= 2
    for run in runs:
        assert run.started_at is not None
        assert run.scheduled_for <= run.started_at


async def test_it_wakes_its_worker_when_a_slot_becomes_free(db_url: str) -> None:
    done: list[int] = []
    all_done = asyncio.Event()

    async def work() -> None:
        await asyncio.sleep(0.06)  # too long to claim ahead
        done.append(1)
        if len(done) == 4:
            all_done.set()

    async with Scheduler(db_url, tasks=TaskRegistry(), workers=1) as scheduler:
        for number in range(4):
            await scheduler.add(f"job-{number}", work)
            await scheduler.run(f"job-{number}")
        async with asyncio.timeout(20):
            await all_done.wait()


async def test_it_may_be_told_the_same_at_each_start(sqlite_url: str) -> None:
    async def work() -> None:
        pass

    async with Scheduler(sqlite_url, tasks=TaskRegistry()) as scheduler:
        first = await scheduler.add("job", work, every=timedelta(hours=6), timezone="Europe/Berlin")
        again = await scheduler.add("job", work, every=timedelta(hours=6), timezone="Europe/Berlin")
        assert again == first
        await scheduler.jobs.pause("job")
        changed = await scheduler.add("job", work, cron="0 2 * * *", retry=RetryPolicy(max_retries=1))
        assert changed.id == first.id
        assert changed.paused, "what an operator did is not undone by a redeploy"
        assert changed.timing.schedule == Cron(expression="0 2 * * *")
        assert changed.retry.max_retries == 1


async def test_it_knows_every_form_of_when(sqlite_url: str) -> None:
    async with Scheduler(sqlite_url, tasks=TaskRegistry()) as scheduler:
        asked = await scheduler.add("asked", "somebody")
        assert asked.timing.schedule == Manual()
        every = await scheduler.add("every", "somebody", every=timedelta(seconds=90))
        assert every.timing.schedule == Interval(count=90, unit=IntervalUnit.SECONDS)
        daily = await scheduler.add("daily", "somebody", every=timedelta(days=2))
        assert daily.timing.schedule == Interval(count=2, unit=IntervalUnit.DAYS)
        with pytest.raises(Invalid, match="more than one schedule"):
            await scheduler.add("both", "somebody", cron="@daily", every=timedelta(hours=1))
        with pytest.raises(Invalid, match="whole seconds"):
            await scheduler.add("half", "somebody", every=timedelta(seconds=0.5))


async def test_it_hands_back_what_runs_when_the_block_is_left(db_url: str) -> None:
    started = asyncio.Event()

    async def long() -> None:
        started.set()
        await asyncio.Event().wait()

    async with Scheduler(db_url, tasks=TaskRegistry(), grace=timedelta()) as scheduler:
        await scheduler.add("long", long)
        await scheduler.run("long")
        async with asyncio.timeout(30):
            await started.wait()
    async with Scheduler(db_url, tasks=TaskRegistry()) as scheduler:
        [run] = await scheduler.history("long")
        assert run.losses == run.failures == 0
        assert run.attempt >= 1


async def test_it_says_at_once_that_the_database_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noonday.instance.parts._PATIENCE", 0.0)
    with pytest.raises(Unavailable, match="cannot be used"):
        async with Scheduler("postgresql://nobody@127.0.0.1:1/nothing"):
            pass


def test_it_gives_out_its_public_names() -> None:
    assert noonday.__all__ == ["Lock", "LockLost", "Locks", "Scheduler", "__version__", "task"]
    for name in noonday.__all__:
        assert getattr(noonday, name) is not None
    assert noonday.__version__.count(".") == 2
    with pytest.raises(AttributeError, match="no attribute 'Celery'"):
        getattr(noonday, "Celery")  # noqa: B009 - asked for on purpose
