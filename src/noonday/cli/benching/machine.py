"""A whole instance without its API, in this process, with a task that notes when it was really started."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import structlog

from noonday.cli.benching.filling import TASK, Kind
from noonday.cli.benching.places import Place
from noonday.clock import Clock, shared_clock
from noonday.domain.errors import Unavailable
from noonday.engine.engine import Engine, EngineConfig, Role
from noonday.instance.parts import ClusterConfig, assembled, made_up_id
from noonday.store.database import Database
from noonday.targets.config import TargetsConfig
from noonday.targets.tasks import TaskRegistry, current, make_task

__all__ = ["Machine", "Mark", "quiet", "running"]

_ALL: Final = 10**9  # nothing is pruned while it is measured
_STALLED: Final = 60.0  # seconds without any progress after which nothing more is awaited
_LOOK: Final = 0.002
_GRACE: Final = timedelta(seconds=10)

Mark = tuple[float, float]  # due and started, in seconds of the instance's clock


class Marks(list[Mark]):
    """What the task saw, in the order of starts; whoever waits for so many is woken."""

    def __init__(self) -> None:
        super().__init__()
        self._wanted = 0
        self._enough = asyncio.Event()

    def add(self, mark: Mark) -> None:
        self.append(mark)
        if len(self) >= self._wanted:
            self._enough.set()

    async def reach(self, count: int) -> None:
        self._wanted = count
        self._enough.clear()
        if len(self) < count:
            await self._enough.wait()


@dataclass(frozen=True, slots=True)
class Machine:
    engine: Engine
    db: Database
    clock: Clock
    kind: Kind
    marks: Marks

    def now(self) -> float:
        return self.clock.now().timestamp()

    @property
    def settled(self) -> int:
        """How many ends are durable."""
        return self.engine.counters.settled

    async def all_started(self, count: int, within: float) -> None:
        """Until so many have started, but no longer than so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self.marks.reach(count)

    async def all_settled(self, count: int) -> None:
        """Until so many have ended, and every end is durable."""
        progress, since = -1, self.clock.monotonic()
        while self.settled < count:
            if self.settled != progress:
                progress, since = self.settled, self.clock.monotonic()
            elif self.clock.monotonic() - since > _STALLED:
                raise Unavailable(
                    f"{count - progress:,} of {count:,} runs have not ended within {_STALLED:g} s"
                )
            await self.engine.settler.drained()
            await asyncio.sleep(_LOOK)


@asynccontextmanager
async def running(place: Place, slots: int) -> AsyncIterator[Machine]:
    clock = shared_clock(place.url)
    marks = Marks()

    async def note() -> None:
        marks.add((current().scheduled_for.timestamp(), clock.now().timestamp()))

    tasks = TaskRegistry()
    tasks.add(make_task(note, TASK))
    config = EngineConfig(
        instance_id=made_up_id(),
        roles=frozenset({Role.SCHEDULER, Role.WORKER}),
        slots=slots,
        own_process=True,
        keep_runs=_ALL,
    )
    async with assembled(
        database_url=place.url,
        clock=clock,
        config=config,
        targets=lambda secret: TargetsConfig(signing_secret=secret, tasks=tasks, clock=clock),
        stop=asyncio.Event(),
        cluster=ClusterConfig(
            redis_url=place.redis, prefix=place.prefix, leader_key=f"{place.prefix}:leader"
        ),
    ) as parts:
        await parts.engine.begin()
        actors = [asyncio.create_task(actor.run(), name=actor.name) for actor in parts.actors]
        try:
            kind = Kind(version=1 if place.redis is None else 2)
            yield Machine(parts.engine, parts.db, clock, kind, marks)
            await parts.engine.finish(_GRACE)  # the next one leads at once
        finally:
            for actor in actors:
                actor.cancel()
            await asyncio.gather(*actors, return_exceptions=True)


@contextmanager
def quiet() -> Iterator[None]:
    """Only what goes wrong is said, and on stderr."""
    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.configure(**before)
