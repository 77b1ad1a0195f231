"""Redis may vanish, hang, forget and come back: version 2 goes on, and each run happens once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from noonday.domain.job import Lane
from noonday.domain.schedule import Interval, IntervalUnit
from tests.engine.road_steps import (
    PATIENCE,
    Machine,
    Target,
    a_prefix,
    add,
    cleaned,
    completed,
    eyes,
    force,
    machine,
    on_the_road,
    settled,
    until,
    until_empty,
)
from tests.servers import Server, start_redis

EVERY_SECOND = Interval(count=1, unit=IntervalUnit.SECONDS)


@pytest.fixture
def own() -> Iterator[Server]:
    """A Redis that a test may do anything to."""
    server = start_redis(own=True)
    yield server
    server.unpause()
    server.stop()


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with eyes(redis_url) as client:
        yield client


async def ran_more(one: Machine, count: int, seconds: float) -> float:
    """How long it took until so many more ran."""
    began, before = time.monotonic(), len(one.target.ran)
    await until(lambda: len(one.target.ran) >= before + count, f"{count} more runs", seconds)
    return time.monotonic() - began


async def test_when_redis_dies_version_2_takes_the_database_road_and_returns(
    db_url: str, own: Server
) -> None:
    with capture_logs() as logs:
        async with machine(db_url, redis=own.url, prefix="p") as one, one.running():
            await add(one.db, EVERY_SECOND)
            await ran_more(one, 2, PATIENCE)
            assert one.engine.streaming

            own.kill()
            assert await ran_more(one, 2, 10) < 8
            assert not one.engine.streaming
            put = one.engine.counters.enqueued
            await ran_more(one, 2, 10)
            assert one.engine.counters.enqueued == put

            own.start()
            await until(lambda: one.engine.streaming, "the streams again", 10)
            await ran_more(one, 3, 15)
            assert one.engine.counters.enqueued > put
            assert not one.target.twice
            assert one.engine.counters.refused == one.engine.counters.lease_losses == 0
            async with eyes(own.url) as client:
                groups = await client.xinfo_groups("p:jobs:normal")
                assert [group["name"] for group in groups] == ["scheduler"]
    said = [line for line in logs if line.get("log_level") in {"warning", "error"}]
    assert len([line for line in said if line["action"] == "streams.down"]) == 1
    assert len(said) <= 6, said


async def test_a_redis_that_hangs_is_noticed_and_passed_by(db_url: str, own: Server) -> None:
    async with machine(db_url, redis=own.url, prefix="p") as one, one.running():
        await add(one.db, EVERY_SECOND)
        await ran_more(one, 2, PATIENCE)
        own.pause()
        began = time.monotonic()
        await until(lambda: not one.engine.streaming, "it is noticed", 10)
        assert time.monotonic() - began < 5
        await ran_more(one, 2, 10)
        own.unpause()
        await until(lambda: one.engine.streaming, "the streams again", 15)
        await ran_more(one, 2, 15)
        assert not one.target.twice
        async with eyes(own.url) as client:
            assert sum(found[1] for found in (await on_the_road(client, "p")).values()) <= 10


async def test_after_a_flush_everything_runs_exactly_once(db_url: str, own: Server) -> None:
    async with (
        machine(db_url, redis=own.url, prefix="p", slots=4, target=Target(takes=0.15)) as one,
        one.running(),
        eyes(own.url) as client,
    ):
        made = [await add(one.db, lane=lane) for lane in Lane]
        for job in made:
            await force(one.db, job, 25)
        await until(lambda: len(one.target.ran) >= 8, "a few")
        assert sum(found[0] for found in (await on_the_road(client, "p")).values()) > 20
        await client.flushall()
        found = await settled(one.db, 75)
        assert completed(found) == 75
        assert len(one.target.ran) == 75
        assert {run.attempt for run in found} == {1}
        await until_empty(client, "p")


async def test_a_redis_that_was_restarted_without_its_data_is_filled_anew(db_url: str, own: Server) -> None:
    async with (
        machine(db_url, redis=own.url, prefix="p", slots=2, target=Target(takes=0.2)) as one,
        one.running(),
    ):
        job = await add(one.db)
        await force(one.db, job, 30)
        await until(lambda: len(one.target.ran) >= 4, "a few")
        await asyncio.to_thread(own.restart, wipe=True)
        assert completed(await settled(one.db, 30)) == 30
        assert len(one.target.ran) == 30
        async with eyes(own.url) as client:
            await until_empty(client, "p")


async def test_without_redis_at_the_start_it_runs_and_finds_it_later(db_url: str, own: Server) -> None:
    own.kill()
    async with machine(db_url, redis=own.url, prefix="p") as one, one.running():
        job = await add(one.db)
        await force(one.db, job, 3)
        await settled(one.db, 3, 15)
        assert not one.engine.streaming
        own.start()
        await until(lambda: one.engine.streaming, "the streams", 10)
        await force(one.db, job, 3)
        await settled(one.db, 6, 15)
        assert one.engine.counters.enqueued == 3
        assert len(one.target.ran) == 6


async def test_a_leader_without_redis_holds_nobody_up(db_url: str, own: Server) -> None:
    """Cut off alone, it cannot feed; whoever can still read the road finds it empty and looks at the rows."""
    async with (
        machine(db_url, redis="redis://127.0.0.1:1/0", prefix="p", slots=0) as leader,
        machine(db_url, redis=own.url, prefix="p", roles=frozenset({"worker"})) as worker,
        leader.running(),
        worker.running(),
    ):
        await force(leader.db, await add(leader.db), 5)
        await settled(leader.db, 5, 15)
        assert len(worker.target.ran) == 5
        assert worker.engine.counters.rescued == 5


async def test_many_executions_over_three_instances_none_twice_none_lost(
    postgres_url: str, redis_url: str, redis: Redis
) -> None:
    prefix, target, count = a_prefix(), Target(takes=0.005), 1500
    async with AsyncExitStack() as exits:
        await exits.enter_async_context(cleaned(redis, prefix))
        crew = [
            await exits.enter_async_context(
                machine(postgres_url, redis=redis_url, prefix=prefix, target=target)
            )
            for _ in range(3)
        ]
        db = crew[0].db
        made = [await add(db, version=1 + (n % 3 > 0), lane=Lane(n % 3 + 1)) for n in range(30)]
        for job in made:
            await force(db, job, count // len(made))
        for one in crew:
            await exits.enter_async_context(one.running())
        found = await settled(db, count, 90)
        assert completed(found) == len(target.ran) == count
        assert {(run.failures, run.losses) for run in found} == {(0, 0)}
        assert target.most <= 30
        assert all(one.engine.counters.settled > count / 10 for one in crew)
        await until_empty(redis, prefix)


async def test_an_instance_that_stops_in_order_leaves_nothing_in_its_hands(
    db_url: str, redis_url: str, redis: Redis
) -> None:
    prefix = a_prefix()
    async with (
        cleaned(redis, prefix),
        machine(db_url, redis=redis_url, prefix=prefix, slots=3, target=Target(takes=0.3)) as one,
    ):
        async with one.running():
            await force(one.db, await add(one.db), 12)
            await until(lambda: one.target.now == 3, "its slots are full")
            assert await one.engine.finish(timedelta(seconds=10))
        ended = len(one.target.ran)
        assert ended < 12
        found = await on_the_road(redis, prefix)
        assert {pending for _, pending in found.values()} == {0}
        async with machine(db_url, redis=redis_url, prefix=prefix) as two, two.running():
            assert completed(await settled(two.db, 12)) == 12
            assert len(two.target.ran) == 12 - ended
            await until_empty(redis, prefix)
