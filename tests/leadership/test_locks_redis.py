"""Locks in Redis: what people see of them, and what becomes of them when Redis forgets, hangs or is gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest
import structlog

from noonday import LockLost, Locks
from noonday.domain.errors import RoadDown
from noonday.redis_link import RedisLink
from tests.servers import Server, start_redis

ONCE = timedelta()
TTL = timedelta(seconds=1.5)


@pytest.fixture
def server() -> Iterator[Server]:
    made = start_redis()
    if made.process is None:
        pytest.skip("the Redis of the tests was given by URL and is not ours to stop")
    yield made
    made.stop()


@pytest.fixture
async def link(server: Server) -> AsyncIterator[RedisLink]:
    made = RedisLink(server.url)
    yield made
    await made.close()


@pytest.fixture
async def locks(server: Server) -> AsyncIterator[Locks]:
    async with Locks(server.url) as made:
        yield made


async def test_people_see_it_by_its_name(locks: Locks, link: RedisLink) -> None:
    async with locks.lock("schedule:report", ttl=timedelta(seconds=60)):
        assert len(await link.call("GET", "lock:schedule:report")) == 32
        assert 0 < await link.call("PTTL", "lock:schedule:report") <= 60_000
    assert await link.call("GET", "lock:schedule:report") is None
    assert await link.call("PTTL", "lock-fence:schedule:report") > 0, "nothing stays for ever"


async def test_the_number_grows_even_if_redis_forgets_everything(locks: Locks, link: RedisLink) -> None:
    lock = locks.lock("forgotten", renew=False)
    assert await lock.acquire(ONCE)
    before = lock.fence
    await link.call("FLUSHALL")
    again = locks.lock("forgotten")
    assert await again.acquire(ONCE)
    assert again.fence > before
    assert await lock.release() is False


async def test_the_number_grows_even_if_the_clock_of_redis_goes_back(locks: Locks, link: RedisLink) -> None:
    ahead = 10**16
    await link.call("SET", "lock-fence:ahead", str(8 * 10**15))
    async with locks.lock("ahead") as lock:
        assert 8 * 10**15 < lock.fence < ahead


async def test_it_survives_a_redis_that_hangs_for_a_moment(locks: Locks, server: Server) -> None:
    async with asyncio.timeout(20), locks.lock("moment", ttl=timedelta(seconds=4)) as lock:
        renewed = lock._trusted_until
        server.pause()
        await asyncio.sleep(0.5)
        server.unpause()
        while lock._trusted_until == renewed:
            await asyncio.sleep(0.01)
        assert lock.held


async def test_it_is_lost_in_time_when_redis_hangs(locks: Locks, server: Server) -> None:
    """Stopped when the trust ended; the release then waits for an answer for as long as calls do."""

    async def work() -> None:
        async with asyncio.timeout(20), locks.lock("hangs", ttl=TTL):
            server.pause()
            await asyncio.Event().wait()

    with pytest.raises(LockLost):
        await work()
    server.unpause()


async def test_a_block_that_is_done_does_not_fail_because_redis_is_gone(locks: Locks, server: Server) -> None:
    with structlog.testing.capture_logs() as lines:
        async with locks.lock("gone", ttl=timedelta(seconds=60)):
            await asyncio.to_thread(server.halt)
    assert [line["event"] for line in lines] == ["a lock ends by itself"]
    lock = locks.lock("gone")
    with pytest.raises(RoadDown):
        await lock.acquire(ONCE)
    assert not lock.held
