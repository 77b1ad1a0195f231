"""The whole way of a version 2 fire: planned, pledged, put, taken, claimed, run, settled, acknowledged."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from noonday.domain.execution import Road
from noonday.domain.schedule import Interval, IntervalUnit
from tests.engine.road_steps import (
    a_prefix,
    add,
    cleaned,
    completed,
    eyes,
    force,
    machine,
    settled,
    until,
    until_empty,
)


@pytest.fixture
async def redis(redis_url: str) -> AsyncIterator[Redis]:
    async with eyes(redis_url) as client:
        yield client


async def test_a_fire_takes_the_streams_and_leaves_them_empty(
    db_url: str, redis_url: str, redis: Redis
) -> None:
    prefix = a_prefix()
    async with (
        cleaned(redis, prefix),
        machine(db_url, redis=redis_url, prefix=prefix) as one,
        one.running(),
    ):
        await add(one.db, Interval(count=1, unit=IntervalUnit.SECONDS))
        await until(lambda: len(one.target.ran) >= 3 and one.engine.counters.enqueued >= 3, "three fires")
        assert one.engine.streaming
        assert one.engine.counters.rescued == one.engine.counters.restored == 0
        assert sorted(one.target.late)[1] < 1.0
        assert min(one.target.late) >= 0
        assert not one.target.twice


async def test_a_forced_run_goes_out_at_once(db_url: str, redis_url: str, redis: Redis) -> None:
    prefix = a_prefix()
    async with (
        cleaned(redis, prefix),
        machine(db_url, redis=redis_url, prefix=prefix) as one,
        one.running(),
    ):
        job = await add(one.db)
        await force(one.db, job, 20)
        found = await settled(one.db, 20)
        assert completed(found) == 20
        assert {row.road for row in found} == {Road.STREAMS}
        assert one.engine.counters.enqueued == 20
        assert sorted(one.target.late)[10] < 2  # told of, and not found by a sweep
        await until_empty(redis, prefix)
