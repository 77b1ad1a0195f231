"""PostgreSQL is stopped or killed and comes back: nothing starts meanwhile, nothing is lost, nobody helps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import count

import psycopg
import pytest
from psycopg import sql
from structlog.testing import capture_logs

from noonday.domain.execution import ExecutionState, SkipReason
from noonday.targets.tasks import current
from tests.engine.outages import EVERY_SECOND, accounted, living, true
from tests.proxy import Proxy
from tests.servers import Server

OUTAGE = 4.0  # seconds
SECOND = timedelta(seconds=1)

pytestmark = pytest.mark.crash
_serial = count(1)


@pytest.fixture
def url(own_postgres: Server) -> str:
    """A database for each test."""
    name = f"noonday_{next(_serial)}"
    with psycopg.connect(own_postgres.url, autocommit=True) as conn:
        conn.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return own_postgres.url.rpartition("/")[0] + f"/{name}"


@pytest.mark.parametrize("how", ["halt", "kill"])
async def test_an_outage_of_the_server_delays_and_loses_nothing(
    own_postgres: Server, url: str, how: str
) -> None:
    started: list[float] = []
    ran: list[tuple[str, int]] = []
    release, begun = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def tick() -> None:
        started.append(loop.time())
        ran.append((current().execution_id, current().attempt))

    async def long() -> None:
        begun.set()
        await release.wait()

    with Proxy.to(url) as proxy:
        async with living(proxy.url, tick, long) as life:
            ticks = await life.add("ticks", "tick", EVERY_SECOND)
            one = await life.add("one", "long")
            await true(lambda: len(started) >= 2 and begun.is_set())
            with capture_logs() as lines:
                await asyncio.to_thread(getattr(own_postgres, how))
                down_at, tried = loop.time(), proxy.accepted
                release.set()  # ends while nobody can be told
                await asyncio.sleep(OUTAGE)
                tried = proxy.accepted - tried
                assert not [at for at in started if at > down_at + 1], "something started on no claim"
                await asyncio.to_thread(own_postgres.start)
                back_at = loop.time()
                await true(lambda: started[-1] > back_at)
            assert started[-1] - back_at < 15
            run = await life.ended(one)
            await true(lambda: len([at for at in started if at > back_at]) >= 3)
            rows, now = await life.rows(ticks), life.parts.clock.now()
            attempts = await life.attempts(run)
    assert (run.state, run.attempt, run.losses) == (ExecutionState.COMPLETED, 1, 0)
    assert [attempt.outcome for attempt in attempts] == ["completed"]
    instants = accounted(rows, SECOND)
    assert instants == [instants[0] + SECOND * n for n in range(len(instants))], "a due time is missing"
    due = [row for row in rows if row.scheduled_for < now - 2 * SECOND]  # later ones are on their way
    assert {row.state for row in due} <= {ExecutionState.COMPLETED, ExecutionState.SKIPPED}
    assert {row.skip_reason for row in rows} <= {None, SkipReason.COALESCED, SkipReason.OVERLAP}
    assert len(set(ran)) == len(ran), "an attempt ran twice"
    span = back_at - down_at + 2
    assert len(lines) <= 2 * span, f"{len(lines)} lines in {span:.1f} s: {[line['event'] for line in lines]}"
    assert tried <= 20 * span, f"{tried} connections in {span:.1f} s"
    assert [line["event"] for line in lines].count("the database is away") == 1


async def test_a_leader_that_comes_back_after_its_term_ran_out_goes_on(url: str) -> None:
    """The database hangs for longer than the leader's TTL."""
    started: list[float] = []
    loop = asyncio.get_running_loop()

    async def tick() -> None:
        started.append(loop.time())

    with Proxy.to(url) as proxy:
        async with living(proxy.url, tick, leader_ttl=2) as life:
            ticks = await life.add("ticks", "tick", EVERY_SECOND)
            await true(lambda: len(started) >= 2)
            proxy.hold()
            await asyncio.sleep(OUTAGE)
            assert not life.parts.engine.elector.leading, "it trusts in a term that may be somebody else's"
            proxy.resume()
            back_at = loop.time()
            await true(lambda: len([at for at in started if at > back_at]) >= 3)
            rows = await life.rows(ticks)
    instants = accounted(rows, SECOND)
    assert instants == [instants[0] + SECOND * n for n in range(len(instants))], "a due time is missing"


async def test_an_attempt_ends_before_its_lease_when_the_database_hangs(url: str) -> None:
    """It cannot know whether somebody else has its lease by then; the next starts after it has stopped."""
    spans: list[tuple[float, float]] = []
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    async def work() -> None:
        began = loop.time()
        begun.set()
        try:
            await asyncio.sleep(60 if not spans else 0.1)
        finally:
            spans.append((began, loop.time()))

    with Proxy.to(url) as proxy:
        async with living(proxy.url, work, lease=2) as life:
            job = await life.add("job", "work")
            await true(begun.is_set)
            proxy.hold()
            held_at = loop.time()
            await true(lambda: bool(spans), patience=10)
            assert spans[0][1] - held_at < 2, "it ran on after its lease was over"
            await asyncio.sleep(2)
            assert len(spans) == 1
            proxy.resume()
            run = await life.ended(job)
            losses = life.parts.engine.counters.lease_losses
    assert (run.state, run.losses, losses) == (ExecutionState.COMPLETED, 1, 1)
    assert spans[0][1] < spans[1][0], "two attempts at a time"


async def test_it_comes_back_behind_a_pooler_too(
    own_postgres: Server, url: str, pooler: Callable[[str], str]
) -> None:
    """PgBouncer stays up, lets clients in, and has nobody to pass them on to."""
    started: list[float] = []
    loop = asyncio.get_running_loop()

    async def tick() -> None:
        started.append(loop.time())

    async with living(pooler(url), tick, pooled=True) as life:
        ticks = await life.add("ticks", "tick", EVERY_SECOND)
        await true(lambda: len(started) >= 2)
        await asyncio.to_thread(own_postgres.halt)
        await asyncio.sleep(OUTAGE / 2)
        await asyncio.to_thread(own_postgres.start)
        back_at = loop.time()
        await true(lambda: len([at for at in started if at > back_at]) >= 3)
        assert next(at for at in started if at > back_at) - back_at < 15
        rows = await life.rows(ticks)
    instants = accounted(rows, SECOND)
    assert instants == [instants[0] + SECOND * n for n in range(len(instants))], "a due time is missing"
