"""Engines on the streams' road for tests: a real database, Redis and clock; the target alone is ours."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from redis.asyncio import Redis

from noonday.clock import SystemClock
from noonday.control.jobs import Jobs
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job, Overlap, OverlapPolicy
from noonday.domain.outcome import Completed, Outcome
from noonday.domain.schedule import Manual, Schedule
from noonday.engine.engine import Engine, EngineConfig, Surroundings
from noonday.ids import new_id
from noonday.ports import Queue, Run
from noonday.queue.redis_streams import RedisStreams
from noonday.redis_link import RedisLink
from noonday.store import history
from noonday.store.database import Database
from noonday.store.instances import Instance
from tests.factories import a_job, a_timing

CLOCK = SystemClock()
PATIENCE = 40.0
LANES = ("high", "normal", "low")
ALLOW = OverlapPolicy(overlap=Overlap.ALLOW)


def a_prefix() -> str:
    """Of keys that no other test uses."""
    return f"test-{new_id(CLOCK.now())}"


@dataclass
class Target:
    """Remembers what it ran, and how much at once."""

    takes: float = 0.0
    ran: list[str] = field(default_factory=list)
    late: list[float] = field(default_factory=list)
    now: int = 0
    most: int = 0
    outcome: Callable[[Run], Outcome] = lambda run: Completed()

    async def run(self, run: Run) -> Outcome:
        execution = run.claim.execution
        self.ran.append(execution.id)
        self.late.append((CLOCK.now() - execution.scheduled_for).total_seconds())
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await asyncio.sleep(self.takes)
        finally:
            self.now -= 1
        return self.outcome(run)

    @property
    def twice(self) -> list[str]:
        return [one for one, count in Counter(self.ran).items() if count > 1]


@dataclass
class Machine:
    """One instance without its doors."""

    db: Database
    engine: Engine
    target: Target
    link: RedisLink | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Machine]:
        """Ends in the middle, as by kill -9."""
        await self.engine.begin()
        tasks = [asyncio.create_task(actor.run()) for actor in self.engine.actors]
        tasks.append(asyncio.create_task(self.db.listen()))
        try:
            yield self
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def machine(
    db_url: str,
    *,
    redis: str | None = None,
    prefix: str = "",
    queue: Callable[[str], Queue] | None = None,
    target: Target | None = None,
    **config: Any,
) -> AsyncIterator[Machine]:
    """On the streams of this Redis, or on a queue of the test's own making."""
    options = EngineConfig(**{"instance_id": f"i-{new_id(CLOCK.now())[-6:]}", **config})
    target = target or Target()
    async with AsyncExitStack() as exits:
        db = Database(db_url)
        exits.push_async_callback(db.close)
        link = None if redis is None else RedisLink(redis)
        road = None if queue is None else queue(options.instance_id)
        if link is not None:
            exits.push_async_callback(link.close)
            road = RedisStreams(link, prefix=prefix, consumer=options.instance_id)

        async def deaf(execution: Execution) -> bool:
            return False

        around = Surroundings(
            db=db,
            clock=CLOCK,
            target=target,
            knows=lambda task: True,
            cancel_remote=deaf,
            describe=lambda: _described(options),
            queue=road,
        )
        yield Machine(db, Engine(around, options), target, link)


def _described(config: EngineConfig) -> Instance:
    now = CLOCK.now()
    return Instance(id=config.instance_id, host="", pid=0, roles=(), started_at=now, heartbeat_at=now)


async def add(db: Database, schedule: Schedule | None = None, version: int = 2, **fields: Any) -> Job:
    timing = a_timing(schedule or Manual(), anchor_at=CLOCK.now())
    fields = {"overlapping": ALLOW, "created_at": CLOCK.now()} | fields
    job = a_job(timing=timing, scheduler_version=version, **fields)
    return await Jobs(db, CLOCK).create(job, by="test")


async def force(db: Database, job: Job, times: int = 1) -> list[str]:
    return [(await Jobs(db, CLOCK).force_run(job.name)).id for _ in range(times)]


async def until(true: Callable[[], bool], what: str, seconds: float = PATIENCE) -> None:
    try:
        async with asyncio.timeout(seconds):
            while not true():
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"{what}: not within {seconds} s") from None


async def rows(db: Database) -> list[Execution]:
    page = await db.read(lambda conn: history.page(conn, limit=10_000))
    return list(page.items)


async def settled(db: Database, count: int, seconds: float = PATIENCE) -> list[Execution]:
    """All rows, once so many have ended and nothing is open."""
    found: list[Execution] = []
    try:
        async with asyncio.timeout(seconds):
            while True:
                found = await rows(db)
                ended = [one for one in found if not one.state.open]
                if len(ended) >= count and len(ended) == len(found):
                    return found
                await asyncio.sleep(0.02)
    except TimeoutError:
        states = Counter(str(one.state) for one in found)
        raise AssertionError(f"{count} should have ended within {seconds} s: {dict(states)}") from None


def completed(found: list[Execution]) -> int:
    return sum(one.state is ExecutionState.COMPLETED for one in found)


@asynccontextmanager
async def eyes(url: str) -> AsyncIterator[Redis]:
    client: Redis = Redis.from_url(url, decode_responses=True)
    try:
        yield client
    finally:
        await client.aclose()


async def on_the_road(client: Redis, prefix: str) -> dict[str, tuple[int, int]]:
    """Messages and pending ones of each lane."""
    found = {}
    for lane in LANES:
        key = f"{prefix}:jobs:{lane}"
        groups: list[dict[str, Any]] = await client.xinfo_groups(key) if await client.exists(key) else []
        found[lane] = (int(await client.xlen(key)), sum(int(one["pending"]) for one in groups))
    return found


async def until_empty(client: Redis, prefix: str) -> None:
    try:
        async with asyncio.timeout(15):  # shorter than the lease: nobody has to take over anything
            while any(found != (0, 0) for found in (await on_the_road(client, prefix)).values()):
                await asyncio.sleep(0.02)
    except TimeoutError:
        raise AssertionError(f"left on the road: {await on_the_road(client, prefix)}") from None


@asynccontextmanager
async def cleaned(client: Redis, prefix: str) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if found := [key async for key in client.scan_iter(f"{prefix}:*")]:
            await client.delete(*found)
