"""The connection to PostgreSQL is cut in the middle of a commit: what really happened is found out."""

from __future__ import annotations

import asyncio
from collections import Counter

import psycopg
import pytest

from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job
from noonday.targets.tasks import current
from tests.engine.outages import EVERY_SECOND, PATIENCE, Life, living, true
from tests.proxy import Proxy

MADE_OR_NOT = pytest.mark.parametrize("made", [True, False], ids=["made", "not made"])
# What tells the statements of one kind of transaction from all others.
PLANS, CLAIMS, SETTLES = b"INSERT INTO executions", b"claimed_at =", b"completed_at ="


class Work:
    """A task that counts its attempts and runs until it may end."""

    def __init__(self) -> None:
        self.ran: Counter[tuple[str, int]] = Counter()
        self.begun, self.may_end = asyncio.Event(), asyncio.Event()

    async def work(self) -> None:
        self.ran[current().execution_id, current().attempt] += 1
        self.begun.set()
        await self.may_end.wait()


async def cut(life: Life, proxy: Proxy, after: bytes, made: bool) -> asyncio.Task[bool]:
    """Waits for the trap in a thread; the connections are new, so that statements travel as text."""
    sprung = proxy.trap(b"COMMIT", answered=made, after=after)
    return asyncio.create_task(asyncio.to_thread(sprung.wait, 20))


async def one_ending(life: Life, job: Job) -> None:
    run = await life.ended(job)
    attempts = await life.attempts(run)
    assert run.state is ExecutionState.COMPLETED
    assert [attempt.outcome for attempt in attempts].count("completed") == 1
    assert [attempt.number for attempt in attempts] == list(range(1, run.attempt + 1))


@MADE_OR_NOT
async def test_an_ending_is_settled_once(postgres_url: str, made: bool) -> None:
    work = Work()
    with Proxy.to(postgres_url) as proxy:
        async with living(proxy.url, work.work) as life:
            job = await life.add("job", "work")
            await true(work.begun.is_set)
            sprung = await cut(life, proxy, SETTLES, made)
            work.may_end.set()
            assert await sprung, "no settling was cut"
            await one_ending(life, job)
            await life.parts.engine.settler.drained()
            counters = life.parts.engine.counters
            assert (counters.settled, counters.refused) == (1, 0), "a settled ending was taken for refused"
    assert work.ran.most_common(1)[0][1] == 1
    assert len(work.ran) == 1


@MADE_OR_NOT
async def test_a_plan_is_made_once(postgres_url: str, made: bool) -> None:
    work = Work()
    work.may_end.set()
    with Proxy.to(postgres_url) as proxy:
        async with living(proxy.url, work.work) as life:
            sprung = await cut(life, proxy, PLANS, made)
            job = await life.add("job", "work")
            assert await sprung, "no plan was cut"
            await one_ending(life, job)
            assert len(await life.rows(job)) == 1
    assert list(work.ran.values()) == [1]


@MADE_OR_NOT
async def test_a_claim_whose_answer_was_lost_is_given_back_at_once(postgres_url: str, made: bool) -> None:
    """And not with the end of its lease, which is as long as a minute here."""
    work = Work()
    work.may_end.set()
    with Proxy.to(postgres_url) as proxy:
        async with living(proxy.url, work.work, lease=60) as life:
            sprung = await cut(life, proxy, CLAIMS, made)
            job = await life.add("job", "work")
            assert await sprung, "no claim was cut"
            async with asyncio.timeout(15):
                await one_ending(life, job)
            (run,) = await life.rows(job)
            assert run.attempt == (2 if made else 1)
    assert list(work.ran.values()) == [1]


async def test_cuts_at_any_moment_lose_and_double_nothing(postgres_url: str) -> None:
    """Every connection, again and again, whatever it is doing."""
    ran: Counter[tuple[str, int]] = Counter()

    async def work() -> None:
        ran[current().execution_id, current().attempt] += 1

    with Proxy.to(postgres_url) as proxy:
        async with living(proxy.url, work, lease=4) as life:
            ticks = await life.add("ticks", "work", EVERY_SECOND)
            jobs = []
            for number in range(30):
                while True:
                    try:
                        jobs.append(await life.add(f"job-{number}", "work"))
                        break
                    except Exception:
                        with psycopg.connect(postgres_url) as conn:  # was it made?
                            query = "SELECT count(*) FROM jobs WHERE name = %s"
                            found = conn.execute(query, (f"job-{number}",)).fetchone()
                        if found != (0,):
                            break
                await asyncio.sleep(0.05)
                proxy.cut()
            for job in jobs:
                await life.ended(job)
            rows = await life.rows(ticks)
    assert set(ran.values()) == {1}, "an attempt ran twice"
    slots = [row.scheduled_for for row in rows]
    assert len(slots) == len(set(slots))


async def test_no_transaction_stays_open_while_something_runs(postgres_url: str) -> None:
    """R3: eight run until they may end. A transaction in which somebody waited for them would never close."""
    running = Counter[str]()
    may_end = asyncio.Event()

    async def work() -> None:
        running["work"] += 1
        await may_end.wait()

    older = """
        SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid() AND xact_start < %s
    """
    async with living(postgres_url, work) as life:
        jobs = [await life.add(f"job-{number}", "work") for number in range(16)]
        await true(lambda: running["work"] == 8)
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as conn:
            began = await (await conn.execute("SELECT clock_timestamp()")).fetchone()
            async with asyncio.timeout(PATIENCE):
                while await (await conn.execute(older, began)).fetchone() != (0,):
                    await asyncio.sleep(0.01)
        may_end.set()
        for job in jobs:
            await life.ended(job)
