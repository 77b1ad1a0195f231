"""Electors among pauses, lost messages and cuts: no term is planned in after it, and someone leads again."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count, islice
from pathlib import Path
from typing import TypeVar

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from noonday.domain.errors import NotLeader, RoadDown, Unavailable
from noonday.engine.elector import Elector
from noonday.leadership.database import DatabaseLeadership
from noonday.leadership.keys import RedisKey
from noonday.leadership.redis import RedisLeadership
from noonday.ports import Leadership
from noonday.store.database import Database, Subscription
from noonday.store.engines import StoreOptions
from noonday.testing import ManualClock
from tests.engine.electing import an_elector

T = TypeVar("T")
TTL = timedelta(seconds=10)
NAMES = ("one", "two", "three")
LOST = -1.0
_serial = count(1)

moves = st.lists(
    st.tuples(
        st.sampled_from(
            ["pass", "pass", "pass", "plan", "plan", "wait", "cut", "heal", "flush", "restart", "zombie"]
        ),
        st.sampled_from(NAMES),
        st.sampled_from([0.1, 1.0, 3.4, 9.5, 10.5]),
    ),
    min_size=10,
    max_size=60,
)
# At each border of a request: nothing, the message is lost, or it takes so long while others go on.
hazards = st.lists(st.sampled_from([0.0, 0.0, 0.0, 0.0, 0.0, LOST, 3.4, 9.5, 10.5]), max_size=60)
Move = tuple[str, str, float]


class World:
    """One store, one Redis, one time, and a script of what goes wrong."""

    def __init__(self, db: Database, script: list[Move], hazards: list[float], *, redis: bool) -> None:
        self.db = db
        self.key = f"leader-{next(_serial)}"
        self.clock = ManualClock()
        self.script = iter(script)
        self.hazards = iter(hazards)
        self.has_redis = redis
        self.redis: dict[str, tuple[str, float]] = {}
        self.cut: set[tuple[str, str]] = set()
        self.newest_term = 0
        self.planned_by: dict[int, Elector] = {}
        self.peers = {name: Peer(self, name) for name in NAMES}
        self.zombies: list[Peer] = []  # former processes of the same names that still move

    async def play(self) -> None:
        for move in self.script:
            await self.do(*move)
            if not self.has_redis:  # a key may vanish, a row does not
                assert len(self.leaders) <= 1

    async def do(self, what: str, name: str, amount: float) -> None:
        match what:
            case "pass":
                await self.peers[name].once()
            case "plan":
                await self.all_plan()
            case "wait":
                self.clock.advance(seconds=amount)
            case "cut":
                self.cut.add((name, "redis" if amount > 2 else "store"))
            case "heal":
                self.cut = {one for one in self.cut if one[0] != name}
            case "flush":
                self.redis.clear()
            case "restart":
                self.zombies.append(self.peers[name])
                self.peers[name] = Peer(self, name)
            case "zombie":
                for peer in self.zombies:
                    await peer.once()

    async def all_plan(self) -> None:
        """Whoever was elected last comes first, so that one of an older term would come after it."""
        everyone = [*self.peers.values(), *self.zombies]
        for peer in sorted(everyone, key=lambda peer: peer.elector.term, reverse=True):
            await peer.plan()

    async def hazard(self, name: str, place: str) -> None:
        what = next(self.hazards, 0.0)
        if what == LOST or (name, place) in self.cut:
            raise RoadDown("lost") if place == "redis" else Unavailable("lost")
        if what:
            self.clock.advance(seconds=what)
            for move in islice(self.script, 2):
                await self.do(*move)

    @property
    def leaders(self) -> list[Peer]:
        return [peer for peer in self.peers.values() if peer.elector.leading]

    def planned(self, elector: Elector, term: int) -> None:
        assert term >= self.newest_term, "planned in a term that was over"
        assert self.planned_by.setdefault(term, elector) is elector, "two planned in one term"
        self.newest_term = term


class Line(Database):
    """One instance's way to the shared store."""

    def __init__(self, world: World, name: str) -> None:
        self.dialect = world.db.dialect
        self._world, self._name = world, name

    def subscribe(self, *topics: str) -> Subscription:
        return self._world.db.subscribe(*topics)

    async def write(self, work: Callable[[Connection], T], *, serially: bool = False) -> T:
        await self._world.hazard(self._name, "store")
        result = await self._world.db.write(work, serially=serially)
        await self._world.hazard(self._name, "store")
        return result

    async def read(self, work: Callable[[Connection], T]) -> T:
        await self._world.hazard(self._name, "store")
        return await self._world.db.read(work)


class Key(RedisKey):
    """One instance's way to the shared key, which is kept by the same rules as in Redis."""

    def __init__(self, world: World, name: str) -> None:
        self._world, self._name = world, name

    async def take(self, holder: str, ttl: timedelta) -> bool:
        await self._world.hazard(self._name, "redis")
        found = self._found()
        if found is None or found[0] == holder:
            ends = self._world.clock.monotonic() + ttl.total_seconds()
            self._world.redis[self._world.key] = (holder, ends)
        await self._world.hazard(self._name, "redis")
        return found is None or found[0] == holder

    async def free(self, holder: str) -> bool:
        await self._world.hazard(self._name, "redis")
        found = self._found()
        if found is None or found[0] != holder:
            return False
        del self._world.redis[self._world.key]
        return True

    async def holder(self) -> tuple[str, timedelta] | None:
        await self._world.hazard(self._name, "redis")
        found = self._found()
        return (
            None if found is None else (found[0], timedelta(seconds=found[1] - self._world.clock.monotonic()))
        )

    def _found(self) -> tuple[str, float] | None:
        found = self._world.redis.get(self._world.key)
        return None if found is None or found[1] <= self._world.clock.monotonic() else found


class Peer:
    def __init__(self, world: World, name: str) -> None:
        self._world = world
        line = Line(world, name)
        keepers: list[Leadership] = [
            DatabaseLeadership(line, world.clock, key=world.key, ttl=TTL, holder=name)
        ]
        if world.has_redis:
            first = RedisLeadership.__new__(RedisLeadership)
            first.key, first.ttl, first.holder = world.key, TTL, name
            first._lease, first._db, first._clock = Key(world, name), line, world.clock
            keepers.insert(0, first)
        self.elector = an_elector(line, world.clock, *keepers, name=name)
        self.next_at = 0.0
        self._busy = False

    async def once(self) -> None:
        if self._busy:
            return  # paused in the middle of a request
        self._busy = True
        try:
            wish = await self.elector.run_once()
            assert isinstance(wish, timedelta | None)
            pause = float("inf") if wish is None else wish.total_seconds()
        except Unavailable:
            pause = 1.0
        finally:
            self._busy = False
        self.next_at = self._world.clock.monotonic() + pause

    async def plan(self) -> bool:
        """A planning transaction: the fence, and what it did is there if it committed."""
        elector, world = self.elector, self._world
        term = elector.term
        try:
            await world.db.write(elector.fence)
        except NotLeader:
            assert not elector.leading
            return False
        world.planned(elector, term)
        return True


async def heal_and_wait(world: World, *, all_but_redis: bool) -> None:
    """Liveness: within the time to live and a moment somebody leads, and stays."""
    world.cut = {(name, "redis") for name in NAMES} if all_but_redis else set()
    world.script, world.hazards = iter(()), iter(())
    world.zombies.clear()
    until = world.clock.monotonic() + TTL.total_seconds() * 1.1 + 1.0  # the back-off after an error
    while not [peer for peer in world.leaders if await peer.plan()]:
        assert world.clock.monotonic() < until, "nobody leads"
        await all_who_are_due(world)
    while world.clock.monotonic() < until + TTL.total_seconds():  # one that has Redis may take over once
        await all_who_are_due(world)
    [leader] = [peer for peer in world.leaders if await peer.plan()]
    term = leader.elector.term
    for _ in range(60):
        await all_who_are_due(world)
        assert await leader.plan(), "a leader that lives is not replaced"
    assert leader.elector.term == term
    assert world.leaders == [leader]


async def all_who_are_due(world: World) -> None:
    world.clock.advance(seconds=0.25)
    for peer in world.peers.values():
        if peer.next_at <= world.clock.monotonic():
            await peer.once()


@pytest.fixture(scope="module")
def shared(sqlite_template: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    path = tmp_path_factory.mktemp("electors") / "noonday.db"
    shutil.copy(sqlite_template, path)
    made = Database(f"sqlite:///{path}", StoreOptions(synchronous="NORMAL"))
    yield made
    made.close_now()


@pytest.mark.parametrize("redis", [True, False], ids=["redis", "database"])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(script=moves, hazards=hazards, all_but_redis=st.booleans())
def test_whatever_happens_terms_are_planned_in_order_and_someone_leads_again(
    shared: Database, redis: bool, script: list[Move], hazards: list[float], all_but_redis: bool
) -> None:
    async def run() -> None:
        world = World(shared, script, hazards, redis=redis)
        await world.play()
        await heal_and_wait(world, all_but_redis=all_but_redis)

    asyncio.run(run())
