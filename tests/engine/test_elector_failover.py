"""Several electors in motion on real servers: the leader dies, hands over, loses Redis, gets it back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from noonday.clock import SystemClock
from noonday.domain.errors import NotLeader
from noonday.engine.elector import Elector
from noonday.leadership.database import DatabaseLeadership
from noonday.leadership.redis import RedisLeadership
from noonday.ports import Leadership
from noonday.redis_link import RedisLink
from noonday.store.database import Database
from noonday.store.notices import INSTANCES
from tests.engine.electing import KEY, Campaigns, an_elector
from tests.servers import Server, start_redis

TTL = timedelta(seconds=2)
SOON = TTL.total_seconds() + 1  # fail-over: the time to live and a moment


class Peer:
    """One instance's elector, with its own connections, in motion."""

    def __init__(self, name: str, database_url: str, redis_url: str | None) -> None:
        self.name = name
        self._database_url = database_url
        self._redis_url = redis_url
        self._exits = AsyncExitStack()

    async def start(self) -> None:
        clock = SystemClock()
        self.db = Database(self._database_url)
        self._exits.push_async_callback(self.db.close)
        keepers: list[Leadership] = [DatabaseLeadership(self.db, clock, key=KEY, ttl=TTL, holder=self.name)]
        if self._redis_url is not None:
            link = RedisLink(self._redis_url)
            self._exits.push_async_callback(link.close)
            keepers.insert(0, RedisLeadership(link, self.db, clock, key=KEY, ttl=TTL, holder=self.name))
        campaigns = Campaigns()
        self.elector: Elector = an_elector(self.db, clock, *keepers, name=self.name, telemetry=campaigns)
        listening = self.db.subscribe(INSTANCES)
        self._motion = [asyncio.create_task(self.db.listen())]
        self._exits.push_async_callback(self.kill)
        async with asyncio.timeout(10):
            await listening.wait()
        self._motion.append(asyncio.create_task(self.elector.run()))
        async with asyncio.timeout(10):
            while not campaigns.count:
                await asyncio.sleep(0.005)

    async def kill(self) -> None:
        """It does and says nothing any more."""
        for task in self._motion:
            task.cancel()
        await asyncio.gather(*self._motion, return_exceptions=True)

    async def close(self) -> None:
        await self._exits.aclose()

    async def may_plan(self) -> bool:
        try:
            await self.db.write(self.elector.fence)
        except NotLeader:
            return False
        return True


class Cluster:
    def __init__(self, database_url: str, redis_url: str | None) -> None:
        self._urls = (database_url, redis_url)
        self.peers: list[Peer] = []

    async def join(self, name: str) -> Peer:
        peer = Peer(name, *self._urls)
        await peer.start()
        self.peers.append(peer)
        return peer

    @property
    def leaders(self) -> list[Peer]:
        return [peer for peer in self.peers if peer.elector.leading]

    async def until(self, holds: Callable[[], bool], seconds: float = SOON) -> None:
        async with asyncio.timeout(seconds):
            while not holds():
                await asyncio.sleep(0.005)

    async def throughout(self, seconds: float, holds: Callable[[], bool]) -> None:
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            assert holds(), [(peer.name, peer.elector.term) for peer in self.peers]
            await asyncio.sleep(0.005)

    async def led(self, seconds: float) -> None:
        """Between the one who hears that its term is over and the one who hears that it was elected lies a
        moment; it must be one."""
        until = asyncio.get_running_loop().time() + seconds
        while asyncio.get_running_loop().time() < until:
            await self.until(lambda: len(self.leaders) > 0, TTL.total_seconds() / 3)
            await asyncio.sleep(0.005)

    async def one_leads(self, seconds: float = SOON) -> Peer:
        await self.until(lambda: len(self.leaders) == 1, seconds)
        return self.leaders[0]


@pytest.fixture
def own_redis() -> Iterator[Server]:
    server = start_redis()
    if server.process is None:
        pytest.skip("the Redis of the tests was given by URL and is not ours to stop")
    yield server
    server.stop()


@pytest.fixture(params=["redis", "database"])
async def cluster(
    request: pytest.FixtureRequest, postgres_url: str, own_redis: Server
) -> AsyncIterator[Cluster]:
    made = Cluster(postgres_url, own_redis.url if request.param == "redis" else None)
    yield made
    for peer in made.peers:
        await peer.close()


async def three(cluster: Cluster) -> tuple[Peer, list[Peer]]:
    """The leader and the others."""
    first = await cluster.join("one")
    await cluster.until(lambda: first.elector.leading, 2)
    others = [await cluster.join("two"), await cluster.join("three")]
    return first, others


async def test_the_others_follow_within_the_time_to_live_when_the_leader_dies(cluster: Cluster) -> None:
    first, others = await three(cluster)
    await first.kill()
    await cluster.until(lambda: any(peer.elector.leading for peer in others))
    [leader] = [peer for peer in others if peer.elector.leading]
    assert not first.elector.leading, "its trust ended before its lease"
    assert leader.elector.term == 2
    assert await leader.may_plan()


async def test_the_next_one_leads_at_once_when_the_leader_stops_in_order(cluster: Cluster) -> None:
    first, others = await three(cluster)
    await first.elector.resign()
    await cluster.until(lambda: any(peer.elector.leading for peer in others), TTL.total_seconds() / 3)


async def test_a_leader_that_lives_is_followed_by_nobody(cluster: Cluster) -> None:
    first, _ = await three(cluster)
    await cluster.throughout(TTL.total_seconds() * 2, lambda: cluster.leaders == [first])
    assert first.elector.term == 1


class TestRedis:
    @pytest.fixture
    async def cluster(self, postgres_url: str, own_redis: Server) -> AsyncIterator[Cluster]:
        made = Cluster(postgres_url, own_redis.url)
        yield made
        for peer in made.peers:
            await peer.close()

    async def test_a_leader_goes_on_while_redis_is_away_and_keeps_its_term(
        self, cluster: Cluster, own_redis: Server
    ) -> None:
        first, _ = await three(cluster)
        await asyncio.to_thread(own_redis.halt)
        await cluster.throughout(TTL.total_seconds() * 2, lambda: cluster.leaders == [first])
        assert await first.may_plan()
        assert first.elector.term == 1
        await asyncio.to_thread(own_redis.start)
        link = RedisLink(own_redis.url)
        try:
            async with asyncio.timeout(SOON):
                while (holder := await link.call("GET", KEY)) is None:
                    await asyncio.sleep(0.01)
        finally:
            await link.close()
        await cluster.until(lambda: [peer.name for peer in cluster.leaders] == [holder], SOON)

    async def test_one_is_elected_by_the_database_while_redis_is_away(
        self, cluster: Cluster, own_redis: Server
    ) -> None:
        first, others = await three(cluster)
        await asyncio.to_thread(own_redis.halt)
        await first.kill()
        await cluster.until(lambda: any(peer.elector.leading for peer in others), SOON + 1)
        leader = await cluster.one_leads()
        assert await leader.may_plan()

    async def test_someone_always_leads_when_redis_forgets_everything(
        self, cluster: Cluster, own_redis: Server
    ) -> None:
        await three(cluster)
        link = RedisLink(own_redis.url)
        try:
            for _ in range(5):
                await link.call("FLUSHALL")
                await cluster.led(TTL.total_seconds() / 3)
            async with asyncio.timeout(SOON):
                while (holder := await link.call("GET", KEY)) is None:
                    await asyncio.sleep(0.01)
        finally:
            await link.close()
        assert (await cluster.one_leads()).name == holder
        assert await cluster.leaders[0].may_plan()

    async def test_a_redis_that_hangs_delays_nobody_for_long(
        self, cluster: Cluster, own_redis: Server
    ) -> None:
        await three(cluster)
        own_redis.pause()
        try:
            await cluster.until(lambda: any(peer.elector.lease == "database" for peer in cluster.leaders))
            assert await (await cluster.one_leads()).may_plan()
        finally:
            own_redis.unpause()
        assert await (await cluster.one_leads()).may_plan()
