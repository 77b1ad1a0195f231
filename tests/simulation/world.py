"""A simulated world: processes of the scheduler, their database, their road, and what is seen of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from noonday.domain.job import Job
from noonday.domain.schedule import Timing
from noonday.engine.engine import Engine, EngineConfig, Role, Surroundings
from noonday.leadership.database import DatabaseLeadership
from noonday.store.instances import Instance
from noonday.store.leadership import nobody_died
from noonday.testing import FlakyRoad
from tests.simulation.bodies import Bodies, Body, Manner
from tests.simulation.store import ProcessDatabase, SharedStore
from tests.simulation.universe import START, Process, ProcessClock, Universe

LEASE = timedelta(seconds=4)
TTL = timedelta(seconds=4)


@dataclass(slots=True, eq=False)
class Node:
    """One process of the scheduler."""

    name: str
    process: Process
    db: ProcessDatabase
    engine: Engine
    stop: asyncio.Event
    main: asyncio.Task[Any]
    thawed_at: float = -1.0


@dataclass(slots=True)
class Stretch:
    """From when on a job had this timing, and whether people had laid it to rest."""

    since: float
    timing: Timing
    resting: bool = False
    until: datetime | None = None  # a rest that ends by itself


@dataclass(slots=True, eq=False)
class World:
    seed: int
    store: SharedStore
    chance: Random
    universe: Universe
    road: FlakyRoad
    slots: int = 10
    configured: bool = False  # a process has the same id each time it is started
    nodes: dict[str, Node] = field(default_factory=dict)
    jobs: dict[str, Job] = field(default_factory=dict)
    manners: dict[str, Manner] = field(default_factory=dict)
    stretches: dict[str, list[Stretch]] = field(default_factory=dict)
    cancelled: set[str] = field(default_factory=set)  # executions that people cancelled
    skipped: set[tuple[str, datetime]] = field(default_factory=set)  # runs that people skipped: job and time
    bodies: list[Body] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    watch: Callable[[World, Body], None] | None = None
    mended: bool = False  # the faults are over
    deaf_until: float = 0.0  # processes do not hear of each other meanwhile
    desk: ProcessDatabase = field(init=False)  # of the people, whose way to the database is safe
    _starts: int = 0

    def __post_init__(self) -> None:
        self.desk = self.database(self.universe.process("desk"))

    @property
    def time(self) -> float:
        return self.universe.time

    def say(self, text: str) -> None:
        self.trace.append(f"{self.time:10.6f} {text}")

    def fail(self, text: str) -> None:
        self.say(f"BROKEN: {text}")
        self.broken.append(text)

    def database(self, process: Process) -> ProcessDatabase:
        def strike(how: str) -> None:
            if how == "kill":
                self.kill(process.name)
            else:
                self.freeze(process.name, 1.0 + 8.0 * self.chance.random())

        return ProcessDatabase(self.store, self.universe, process, self._told, strike)

    def start(self, name: str) -> Node:
        self._starts += 1
        process = self.universe.process(name)
        db = self.database(process)
        with process.inside():
            engine = self._engine(process, db, ProcessClock(self.universe, 1000.0 * self._starts))
        stop = asyncio.Event()
        self.nodes[name] = Node(name, process, db, engine, stop, process.begin(_live(engine, stop)))
        self.say(f"{name} starts")
        return self.nodes[name]

    def kill(self, name: str, only: Node | None = None) -> None:
        """Whoever has this name, or that one process if it is still there."""
        node = self.nodes.get(name)
        if node is not None and only in {None, node}:
            del self.nodes[name]
            self.universe.kill(node.process)
            self.say(f"{name} is killed")

    def freeze(self, name: str, seconds: float) -> None:
        node = self.nodes.get(name)
        if node is not None and not node.process.stopped:
            node.process.stopped = True
            self.say(f"{name} is stopped for {seconds:.3f}")
            self.universe.after(seconds, lambda: self.thaw(name))

    def thaw(self, name: str) -> None:
        node = self.nodes.get(name)
        if node is not None and node.process.stopped:
            node.process.stopped = False
            node.thawed_at = self.time
            self.say(f"{name} goes on")

    def bury(self) -> None:
        """Whoever came to the end by itself is gone."""
        for node in list(self.nodes.values()):
            if node.main.done():
                error = None if node.main.cancelled() else node.main.exception()
                self.say(f"{node.name} ended" if error is None else f"{node.name} ended: {error!r}")
                self.universe.kill(node.process)
                del self.nodes[node.name]

    def _engine(self, process: Process, db: ProcessDatabase, clock: ProcessClock) -> Engine:
        name = process.name
        own_id = name if self.configured else f"{name}.{self._starts}"
        began = clock.now()

        def describe() -> Instance:
            return Instance(id=own_id, host="", pid=0, roles=(), started_at=began, heartbeat_at=clock.now())

        async def nowhere(_: object) -> bool:
            return False

        twin = DatabaseLeadership(db, clock, key="leader", ttl=TTL, holder=own_id)
        twin._died = nobody_died  # in truth all processes of this world are one
        target = Bodies(
            self.universe,
            process,
            manners=self.manners,
            began=self._began,
            ended=self._ended,
            die=lambda: self.kill(name),
            lethal=lambda: not self.mended,
        )
        around = Surroundings(
            db=db,
            clock=clock,
            target=target,
            knows=lambda task: True,
            cancel_remote=nowhere,
            describe=describe,
            queue=self.road.queue(own_id),
            leadership=(twin,),
        )
        config = EngineConfig(
            instance_id=own_id,
            configured_id=self.configured,
            roles=frozenset({Role.SCHEDULER, Role.WORKER}),
            slots=self.slots,
            lease=LEASE,
            check_interval=timedelta(seconds=5),
            stop_grace=timedelta(seconds=1),
        )
        return Engine(around, config)

    def _told(self, teller: ProcessDatabase, topics: frozenset[str]) -> None:
        """Others hear of a commit a moment later; or of all that happened, once they listen again."""
        if not topics:
            return
        for node in self.nodes.values():
            if node.db is not teller:
                late = self.chance.uniform(0.0005, 0.02) + max(self.deaf_until - self.time, 0.0)
                self.universe.after(late, lambda db=node.db: db.wake(topics))  # type: ignore[misc]

    def _began(self, body: Body) -> None:
        self.say(f"{body.process.name} runs {called(body)}")
        if self.watch is not None:
            self.watch(self, body)
        self.bodies.append(body)

    def _ended(self, body: Body) -> None:
        self.say(f"{body.process.name} ended {called(body)}: {body.how}")


def called(body: Body) -> str:
    """An execution as a person reads it: the job, when it was due, which attempt."""
    due = (body.claim.execution.scheduled_for - START).total_seconds()
    return f"{body.claim.job.name} of {due:g} ({body.claim.execution.cause}), attempt {body.attempt}"


async def _live(engine: Engine, stop: asyncio.Event) -> None:
    """As `noonday serve` does it, without the API."""
    await engine.begin()
    async with asyncio.TaskGroup() as group:
        actors = [group.create_task(actor.run(), name=actor.name) for actor in engine.actors]
        await stop.wait()
        await engine.finish(timedelta(seconds=2))
        for actor in actors:
            actor.cancel()
