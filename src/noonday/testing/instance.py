"""An instance without its own motion, driven by a clock that is moved by hand."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import inspect

from noonday.control.jobs import Jobs
from noonday.domain.errors import NotLeader
from noonday.domain.execution import Attempt, Execution, Road
from noonday.domain.job import Job, JobId
from noonday.domain.schedule import Schedule, Timing
from noonday.domain.target import PythonTarget, Target
from noonday.engine.engine import Engine, EngineConfig, Surroundings
from noonday.engine.held import Held
from noonday.engine.loop import Wish
from noonday.ids import new_id
from noonday.leadership.database import DatabaseLeadership
from noonday.store import executions, history, migrate
from noonday.store.database import Database
from noonday.store.instances import Instance
from noonday.targets.config import TargetsConfig
from noonday.targets.dispatch import Targets
from noonday.targets.tasks import TaskRegistry, task
from noonday.testing.clock import ManualClock
from noonday.testing.road import FlakyRoad

Function = TypeVar("Function", bound=Callable[..., Any])

_MOST_ROUNDS = 1000  # at one moment; more is a circle
_LOOK_AGAIN = timedelta(seconds=1)
_PATIENCE = 30.0  # real seconds for what runs outside of the clock, e.g. a thread


class ManualInstance:
    """The whole scheduler without its own motion: it does what is due when you say so."""

    def __init__(  # noqa: PLR0913 - each of them is what some test is about
        self,
        url: str | None = None,
        *,
        clock: ManualClock | None = None,
        name: str = "manual-1",
        slots: int = 10,
        lease: timedelta = timedelta(seconds=30),
        lookahead: timedelta = timedelta(seconds=2),
        road: FlakyRoad | None = None,
        leader_ttl: timedelta | None = None,
    ) -> None:
        """Without a URL it makes a SQLite file of its own, gone when it closes.

        With a road, made on the same clock, jobs of version 2 take it. With a `leader_ttl` one of several
        instances plans, and another one follows when its lease is over; without, each of them may plan. That
        goes with SQLite alone: PostgreSQL counts the lease by its own clock, which nobody moves by hand.
        """
        self.clock = clock or ManualClock()
        self.road = road
        self._leader_ttl = leader_ttl
        self.tasks = TaskRegistry()
        self._url = url
        self._config = EngineConfig(
            instance_id=name,
            slots=slots,
            lease=lease,
            lookahead=lookahead,
            check_interval=timedelta(days=3650),  # no safety polls: every change is told
            timers=False,
        )
        self._peers: list[ManualInstance] = [self]
        self._exits = AsyncExitStack()
        self._wishes: list[Wish] = []
        self._attempts: set[asyncio.Task[None]] = set()  # that go on, or are about to begin
        self._stopped = False

    async def __aenter__(self) -> Self:
        if self._url is None:
            folder = self._exits.enter_context(tempfile.TemporaryDirectory(prefix="noonday-"))
            self._url = f"sqlite:///{Path(folder) / 'noonday.db'}"
        self.db = Database(self._url)
        self._exits.push_async_callback(self.db.close)
        if not await self.db.read(lambda conn: inspect(conn).has_table("executions")):
            await asyncio.to_thread(migrate.upgrade, self._url)
        config = TargetsConfig(signing_secret=b"for tests alone", tasks=self.tasks, clock=self.clock)
        self._targets = Targets(config)
        self._exits.push_async_callback(self._targets.close)
        self.jobs = Jobs(self.db, self.clock)
        self._start()
        self._exits.push_async_callback(self.kill)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, stack: TracebackType | None
    ) -> None:
        self._peers.remove(self)
        await self._exits.aclose()

    def _start(self) -> None:
        around = Surroundings(
            db=self.db,
            clock=self.clock,
            target=self._targets,
            knows=self._targets.knows,
            cancel_remote=self._targets.cancel_remote,
            describe=self._describe,
            domain_of=self._targets.domain_of,
            queue=None if self.road is None else self.road.queue(self._config.instance_id),
            leadership=self._leadership(),
        )
        self.engine = Engine(around, self._config)
        self.engine.slots.spawn = self._attempt
        self._stopped = False

    def _leadership(self) -> tuple[DatabaseLeadership, ...]:
        ttl, holder = self._leader_ttl, self._config.instance_id
        if ttl is None:
            return ()
        return (DatabaseLeadership(self.db, self.clock, key="leader", ttl=ttl, holder=holder),)

    def _describe(self) -> Instance:
        now = self.clock.now()
        return Instance(
            id=self._config.instance_id, host="", pid=0, roles=(), started_at=now, heartbeat_at=now
        )

    @asynccontextmanager
    async def another(self, name: str = "manual-2") -> AsyncIterator[ManualInstance]:
        """A second instance on the same database, clock, road and tasks; `tick` moves both."""
        config = self._config
        made = ManualInstance(
            self._url,
            clock=self.clock,
            name=name,
            slots=config.slots,
            lease=config.lease,
            lookahead=config.lookahead,
            road=self.road,
            leader_ttl=self._leader_ttl,
        )
        made.tasks, made._peers = self.tasks, self._peers
        async with made:
            self._peers.append(made)
            yield made

    def task(self, function: Function) -> Function:
        """Registers a task with this instance alone."""
        return task(registry=self.tasks)(function)

    async def add(self, name: str, schedule: Schedule, run: str | Target, **fields: Any) -> Job:
        """Fields are those of Job; those of Timing, such as timezone or max_runs, may stand among them."""
        now = self.clock.now()
        bounds = {key: fields.pop(key) for key in list(fields) if key in Timing.__dataclass_fields__}
        job = Job(
            id=JobId(new_id(now)),
            name=name,
            timing=replace(Timing(schedule=schedule, anchor_at=now), **bounds),
            target=PythonTarget(task=run) if isinstance(run, str) else run,
            created_at=now,
            updated_at=now,
        )
        return await self.jobs.create(replace(job, **fields), by="test")

    async def history(self, name: str) -> list[Execution]:
        """All rows of a job, oldest due time first: runs, lapses, and what is still to come."""
        job = await self.jobs.get(name)
        page = await self.db.read(lambda conn: history.page(conn, job.id, limit=10_000))
        return list(reversed(page.items))

    async def attempts(self, execution: Execution) -> list[Attempt]:
        return await self.db.read(lambda conn: history.attempts(conn, execution.id))

    async def kill(self) -> None:
        """As kill -9: what runs stops in the middle, nothing is written, the leases stay behind."""
        self._stopped = True
        self.engine.slots.forsake()
        for attempt in self._attempts:
            attempt.cancel()
        await asyncio.gather(*self._attempts, return_exceptions=True)

    def _attempt(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        made = asyncio.get_running_loop().create_task(work)
        self._attempts.add(made)
        made.add_done_callback(self._attempts.discard)
        return made

    async def restart(self) -> None:
        """A new process of the same configuration; what the old one held is still leased to it."""
        await self.kill()
        self._start()

    def pause(self) -> None:
        """As SIGSTOP: it neither renews nor settles. Its tasks see the clock move and may even end."""
        self._stopped = True

    def resume(self) -> None:
        self._stopped = False

    async def tick(self, **span: float) -> None:
        """Let this much time pass, everything happening at its moment: `await tick(minutes=5)`."""
        until = self.clock.now() + timedelta(**span)
        await self.run_once()
        while (moment := await self._next_moment()) is not None and moment <= until:
            self.clock.move_to(moment)
            await self.run_once()
        self.clock.move_to(until)
        await self.run_once()

    async def run_once(self) -> None:
        """Everything that is to happen at this moment, on all instances of this clock."""
        for _ in range(_MOST_ROUNDS):
            before = [_progress(one.engine) for one in self._peers]
            for one in self._peers:
                if not one._stopped:
                    await one._pass()
            if before == [_progress(one.engine) for one in self._peers]:
                return
        raise RuntimeError("something happens again and again at one moment")

    async def _pass(self) -> None:
        engine = self.engine
        self._wishes = [await engine.elector.run_once()]
        if engine.elector.leading:
            with suppress(NotLeader):
                await engine.watcher.run_once()
                self._wishes.append(await engine.resumer.run_once())
                self._wishes.append(await engine.planner.run_once())
        await engine.recoverer.run_once()
        await engine.breakers.look()
        self._wishes.append(await engine.worker.run_once())
        if self.road is not None:
            await self._pass_on_the_road()
        await self._quiet()
        if len(engine.leases):
            self._wishes.append(await engine.leases.run_once())
            await self._quiet()

    async def _pass_on_the_road(self) -> None:
        engine = self.engine
        self._wishes.append(await engine.streams.run_once())
        if engine.elector.leading:
            await engine.finder.run_once()
        self._wishes.append(await engine.feeder.run_once())
        await engine.taker.run_once()

    async def _quiet(self) -> None:
        """Until every attempt has ended and is durable, or sleeps on the clock."""
        until = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            for _ in range(20):
                await asyncio.sleep(0)
            await self.engine.settler.run_once()
            await self.engine.acker.run_once()
            await self.engine.reporter.run_once()
            await self.engine.outputs.run_once()
            await self.engine.breakers.run_once()
            slots = self.engine.slots
            running = [held for held in self.engine.leases if held.task is not None or slots.has(held)]
            awake = [held for held in running if not self.clock.asleep[held.id]]
            if not awake:
                return
            if asyncio.get_running_loop().time() > until:
                raise TimeoutError(f"{awake[0].claim.job.name} neither ends nor sleeps on the clock")
            await asyncio.sleep(0.001)

    async def _next_moment(self) -> datetime | None:
        now = self.clock.now()
        moments = [self.clock.next_wake]
        for one in self._peers:
            if not one._stopped:
                moments += [now + wish if isinstance(wish, timedelta) else wish for wish in one._wishes]
                moments += [now + _until_deadline(held, self.clock) for held in one.engine.leases]
        moments += await self._moments_of_the_road(now)
        lease_end = await self.db.read(executions.next_lease_end)
        moments.append(None if lease_end is None else lease_end + timedelta(microseconds=1))
        return min((moment for moment in moments if moment is not None and moment > now), default=None)

    async def _moments_of_the_road(self, now: datetime) -> list[datetime | None]:
        """While something that is due still waits there, each second may bring it to somebody's mind."""
        if self.road is None:
            return []
        late = self.road.next_arrival()
        first = await self.db.read(partial(executions.next_available_at, roads=(Road.STREAMS,)))
        return [
            None if late is None else now + timedelta(seconds=late),
            None if first is None else max(first, now + _LOOK_AGAIN),
        ]


def _until_deadline(held: Held, clock: ManualClock) -> timedelta:
    return timedelta(seconds=min(held.deadline - clock.monotonic(), 10**8))


def _progress(engine: Engine) -> tuple[int, ...]:
    counters = engine.counters
    return (
        counters.planned,
        counters.enqueued,
        counters.claimed,
        counters.settled,
        counters.refused,
        counters.recovered,
    )
