"""Jobs started by messages on Redis channels: once each, by whoever leads of two real instances."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from noonday.clock import SystemClock
from noonday.control.jobs import Jobs
from noonday.domain.errors import Unavailable
from noonday.domain.execution import Cause, Execution, ExecutionState, SkipReason
from noonday.domain.job import Job, JobId, Trigger
from noonday.domain.schedule import Event, Timing
from noonday.domain.target import PythonTarget
from noonday.engine.engine import EngineConfig, Role
from noonday.ids import new_id
from noonday.instance.parts import ClusterConfig, Parts, assembled
from noonday.redis_link import RedisLink
from noonday.store import history
from noonday.targets.config import TargetsConfig
from tests.servers import start_redis

CLOCK = SystemClock()


@dataclass
class Cluster:
    """Two instances that plan, none that works: what is started stays to be looked at."""

    link: RedisLink
    prefix: str
    parts: list[Parts] = field(default_factory=list)
    running: dict[str, list[asyncio.Task[None]]] = field(default_factory=dict)

    @property
    def leader(self) -> Parts | None:
        leading = [one for one in self.parts if one.engine.elector.leading]
        return leading[0] if len(leading) == 1 else None

    def channel(self, name: str) -> str:
        return f"{self.prefix}:{name}"

    async def add(self, name: str, channel: str, **fields: Any) -> Job:
        now = CLOCK.now()
        job = Job(
            id=JobId(new_id(now)),
            name=name,
            timing=Timing(schedule=Event(), anchor_at=now),
            target=PythonTarget(task="noop"),
            trigger=Trigger(channel=self.channel(channel)),
            created_at=now,
            updated_at=now,
        )
        return await self.jobs.create(replace(job, **fields), by="test")

    @property
    def jobs(self) -> Jobs:
        return Jobs(self.parts[0].db, CLOCK)

    async def publish(self, channel: str, *texts: str | bytes, listeners: int = 1) -> None:
        for text in texts:
            heard = await self.link.call("PUBLISH", self.channel(channel), text)
            assert heard == listeners, "one instance listens, not each of them"

    async def heard(self, *channels: str) -> None:
        """Until exactly these are followed, of those of this test."""
        names, patterns = [], 0
        for channel in channels:
            if any(mark in channel for mark in "*?["):
                patterns += 1
            else:
                names.append(self.channel(channel))

        async def followed() -> bool:
            listed = await self.link.call("PUBSUB", "CHANNELS", f"{self.prefix}:*")
            if set(listed) - {f"{self.prefix}:notices"} != set(names):
                return False
            counted = await self.link.call("PUBSUB", "NUMSUB", *names)
            return set(counted[1::2]) <= {1}  # who led before may not have let go yet

        await until(followed)
        if patterns:
            await until(lambda: self._patterns(channels))

    async def _patterns(self, channels: Collection[str]) -> bool:
        """A pattern is followed when something published under it is heard."""
        leader = self.leader
        if leader is None or leader.engine.triggers is None:
            return False
        return {self.channel(channel) for channel in channels} <= leader.engine.triggers._jobs.keys()

    async def runs(self, name: str) -> list[Execution]:
        db = self.parts[0].db
        job = await self.jobs.get(name)
        page = await db.read(lambda conn: history.page(conn, job.id, limit=10_000))
        return list(reversed(page.items))

    async def started(self, name: str, count: int) -> list[Execution]:
        async def there() -> bool:
            return len(await self.runs(name)) >= count

        await until(there)
        found = await self.runs(name)
        assert len(found) == count
        return found

    async def end(self, parts: Parts) -> None:
        """As a crash: nothing is said, the lease of the leader runs out."""
        for task in self.running.pop(parts.engine.config.instance_id, ()):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        self.parts.remove(parts)


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = 20) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.02)


@asynccontextmanager
async def clustered(db_url: str, redis_url: str) -> AsyncIterator[Cluster]:
    link = RedisLink(redis_url)
    prefix = f"test-{new_id(CLOCK.now())}"
    made = Cluster(link, prefix)
    config = ClusterConfig(
        redis_url=redis_url,
        prefix=prefix,
        leader_key=f"{prefix}:leader",
        leader_ttl=timedelta(seconds=2),
    )
    stack = [
        assembled(
            database_url=db_url,
            clock=CLOCK,
            config=EngineConfig(instance_id=f"{prefix}-{n}", roles=frozenset({Role.SCHEDULER})),
            targets=lambda secret: TargetsConfig(signing_secret=secret),
            stop=asyncio.Event(),
            cluster=config,
        )
        for n in (1, 2)
    ]
    async with stack[0] as one, stack[1] as other:
        for parts in (one, other):
            await parts.engine.begin()
            made.parts.append(parts)
            tasks = [asyncio.create_task(actor.run(), name=actor.name) for actor in parts.actors]
            made.running[parts.engine.config.instance_id] = tasks
        try:
            yield made
        finally:
            for parts in list(made.parts):
                await made.end(parts)
            keys = await link.call("KEYS", f"{prefix}*")
            for key in keys:
                await link.call("DEL", key)
            await link.close()


@pytest.fixture
async def cluster(db_url: str, redis_url: str) -> AsyncIterator[Cluster]:
    async with clustered(db_url, redis_url) as made:
        yield made


async def test_one_message_is_one_execution_of_each_job_that_listens(cluster: Cluster) -> None:
    await cluster.add("exact", "content:new", config={"limit": 3})
    await cluster.add("twin", "content:new")
    await cluster.add("pattern", "content:*")
    await cluster.add("narrow", "content:n[a-f]w")
    await cluster.add("other", "content:old")
    await cluster.heard("content:new", "content:old", "content:*", "content:n[a-f]w")
    await cluster.publish("content:new", '{"id": 7}', listeners=3)
    for name in ("exact", "twin", "pattern", "narrow"):
        [run] = await cluster.started(name, 1)
        assert (run.cause, run.state) == (Cause.TRIGGER, ExecutionState.QUEUED)
        assert run.triggered_by == f"channel:{cluster.channel('content:new')}"
        assert run.config == ({"limit": 3, "id": 7} if name == "exact" else {"id": 7})
    await cluster.publish("content:old", "hello", listeners=2)
    [run] = await cluster.started("other", 1)
    assert run.config == {"message": "hello", "channel": cluster.channel("content:old")}
    assert len(await cluster.runs("pattern")) == 2
    assert len(await cluster.runs("narrow")) == 1


async def test_it_follows_changes_without_a_restart(cluster: Cluster) -> None:
    await cluster.add("moving", "a")
    await cluster.heard("a")
    there = cluster.channel("b")
    await cluster.jobs.change("moving", lambda job: replace(job, trigger=Trigger(channel=there)))
    await cluster.heard("b")
    await cluster.publish("a", "nobody", listeners=0)
    await cluster.publish("b", "somebody")
    await cluster.started("moving", 1)
    await cluster.jobs.disable("moving")
    await cluster.heard()
    await cluster.jobs.enable("moving")
    await cluster.heard("b")
    await cluster.jobs.cancel("moving")
    await cluster.heard()


async def test_a_paused_job_records_what_it_missed(cluster: Cluster) -> None:
    await cluster.add("held", "a")
    await cluster.add("free", "a")
    await cluster.heard("a")
    await cluster.jobs.pause("held")
    await cluster.publish("a", "one", "two", "three")
    await cluster.started("free", 3)
    skips = await cluster.runs("held")
    assert {skip.state for skip in skips} == {ExecutionState.SKIPPED}
    assert {skip.skip_reason for skip in skips} == {SkipReason.PAUSED}
    assert sum(skip.skipped_count for skip in skips) == 3
    await cluster.jobs.resume("held")
    await cluster.publish("a", "four")
    [*_, run] = await cluster.started("held", len(skips) + 1)
    assert run.state is ExecutionState.QUEUED


async def test_a_burst_is_lost_nowhere_and_in_order(cluster: Cluster) -> None:
    await cluster.add("busy", "burst")
    await cluster.heard("burst")
    channel = cluster.channel("burst")
    await cluster.link.pipeline([("PUBLISH", channel, f'{{"n": {n}}}') for n in range(500)])
    runs = await cluster.started("busy", 500)
    assert [run.config for run in runs] == [{"n": n} for n in range(500)]
    assert len({run.scheduled_for for run in runs}) == 500
    assert [run.number for run in runs] == list(range(1, 501))


async def test_garbage_starts_the_job_with_what_can_be_kept_of_it(cluster: Cluster) -> None:
    await cluster.add("robust", "any")
    await cluster.heard("any")
    garbage: list[str | bytes] = [
        "",
        "\x00",
        b"\xff\xfe",
        "[" * 10_000,
        '{"a": NaN}',
        '{"\\u0000": "\\ud800"}',
    ]
    await cluster.publish("any", *garbage, "x" * 200_000)
    runs = await cluster.started("robust", len(garbage) + 1)
    assert {run.state for run in runs} == {ExecutionState.QUEUED}
    last = runs[-1].config
    assert last is not None
    assert (len(last["message"]), last["message_cut"]) == (64 * 1024, True)


async def test_another_instance_listens_when_the_leader_is_gone(cluster: Cluster) -> None:
    await cluster.add("watched", "a")
    await cluster.heard("a")
    first = cluster.leader
    assert first is not None
    await cluster.publish("a", "one")
    await cluster.started("watched", 1)
    await cluster.end(first)
    await cluster.heard("a")
    await cluster.publish("a", "two")
    await cluster.started("watched", 2)


async def test_it_listens_again_after_redis_was_away(sqlite_url: str) -> None:
    server = start_redis(own=True)
    try:
        async with clustered(sqlite_url, server.url) as cluster:
            await cluster.add("watched", "a")
            await cluster.heard("a")
            await cluster.publish("a", "one")
            await cluster.started("watched", 1)
            server.halt()
            server.start()

            async def again() -> bool:
                """Until one arrives: what is published while nobody leads is lost, as Pub/Sub has it."""
                with suppress(Unavailable):
                    await cluster.link.call("PUBLISH", cluster.channel("a"), "two")
                return len(await cluster.runs("watched")) >= 2

            await until(again, 40)
    finally:
        server.stop()
