"""A whole engine without its API, on a fresh database, with a task that notes when it was really started."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

import uvloop

from noonday.clock import SystemClock
from noonday.engine.engine import Engine, EngineConfig, Role, Surroundings
from noonday.queue.redis_streams import RedisStreams
from noonday.redis_link import RedisLink
from noonday.store.database import Database
from noonday.store.instances import Instance
from noonday.targets import Targets, TargetsConfig, TaskRegistry
from noonday.targets.tasks import current, make_task

T = TypeVar("T")


@dataclass(slots=True)
class Marks:
    """What the no-op task saw: (due, started) in seconds of the wall clock."""

    seen: list[tuple[float, float]] = field(default_factory=list)
    wanted: int = 0
    enough: asyncio.Event = field(default_factory=asyncio.Event)

    async def note(self) -> None:
        self.seen.append((current().scheduled_for.timestamp(), time.time()))
        if len(self.seen) == self.wanted:
            self.enough.set()


@dataclass(frozen=True, slots=True)
class Machine:
    engine: Engine
    marks: Marks
    db: Database


@dataclass(frozen=True, slots=True)
class Place:
    """Where a measurement runs: a database, and a Redis if work takes the streams."""

    url: str
    redis: str | None = None
    prefix: str = "bench"  # own streams for each measurement

    @property
    def version(self) -> int:
        """Of the jobs that are measured here."""
        return 1 if self.redis is None else 2


@asynccontextmanager
async def running(place: Place, slots: int) -> AsyncIterator[Machine]:
    marks = Marks()
    link = None if place.redis is None else RedisLink(place.redis)
    tasks = TaskRegistry()
    tasks.add(make_task(marks.note, "note"))
    clock, db = SystemClock(), Database(place.url)
    targets = Targets(TargetsConfig(signing_secret=b"x" * 32, tasks=tasks))
    config = EngineConfig(
        instance_id="bench", roles=frozenset({Role.SCHEDULER, Role.WORKER}), slots=slots, keep_runs=10**9
    )
    engine = Engine(
        Surroundings(
            db=db,
            clock=clock,
            target=targets,
            knows=targets.knows,
            cancel_remote=targets.cancel_remote,
            describe=lambda: _described(clock.now()),
            queue=None if link is None else RedisStreams(link, prefix=place.prefix, consumer="bench"),
        ),
        config,
    )
    await engine.begin()
    actors = [asyncio.create_task(actor.run()) for actor in engine.actors]
    try:
        yield Machine(engine, marks, db)
    finally:
        for actor in actors:
            actor.cancel()
        await asyncio.gather(*actors, return_exceptions=True)
        await targets.close()
        if link is not None:
            await link.close()
        await db.close()


async def settled(machine: Machine, count: int) -> None:
    """All of them started and all of their endings durable."""
    await machine.marks.enough.wait()
    while machine.engine.counters.settled < count:
        await machine.engine.settler.drained()
        await asyncio.sleep(0.002)


def run(work: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def _described(now: datetime) -> Instance:
    return Instance(
        id="bench",
        host="",
        pid=0,
        roles=(),
        started_at=now,
        heartbeat_at=now,
        slots=0,
        busy=0,
        state="running",
        version="",
    )
