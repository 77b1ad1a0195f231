"""All actors of one instance, put together: which of them run is a matter of its roles."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

import structlog

from noonday.clock import Clock
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.job import Job
from noonday.engine.breakers import Breakers
from noonday.engine.canceller import Cancel, Canceller
from noonday.engine.counters import Counters
from noonday.engine.elector import Elector
from noonday.engine.feeder import Feeder
from noonday.engine.heartbeat import Heartbeat
from noonday.engine.leases import LeaseConfig, Leases
from noonday.engine.loop import Actor
from noonday.engine.planner import Planner, PlannerConfig
from noonday.engine.pruner import Pruner, PrunerConfig
from noonday.engine.recoverer import Recoverer, RecovererConfig
from noonday.engine.reporter import Reporter
from noonday.engine.runner import Runner
from noonday.engine.settler import Settler
from noonday.engine.sweeper import Sweeper, SweeperConfig
from noonday.engine.triggers import Triggers
from noonday.engine.watcher import Watcher, WatcherConfig
from noonday.engine.worker import Hands, Worker, WorkerConfig
from noonday.engine.zones import Zones
from noonday.ports import Leadership, Queue, Receiver, Silence, TargetRunner, Telemetry
from noonday.store.database import Database
from noonday.store.instances import Instance

log = structlog.get_logger(__name__)


class Role(StrEnum):
    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"


ALL_ROLES = frozenset(Role)


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    instance_id: str
    configured_id: bool = False  # given by a person: its former leases are dead by definition
    roles: frozenset[Role] = ALL_ROLES
    slots: int = 10
    lease: timedelta = timedelta(seconds=30)
    lookahead: timedelta = timedelta(seconds=2)
    check_interval: timedelta = timedelta(seconds=60)
    stop_grace: timedelta = timedelta(seconds=5)  # how long a target may take to let go
    keep_runs: int = 100
    keep_days: int = 30
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    timers: bool = True


def _no_domain(job: Job) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the actors need from outside."""

    db: Database
    clock: Clock
    target: TargetRunner
    knows: Callable[[str], bool]  # can this Python task be run here?
    cancel_remote: Cancel
    describe: Callable[[], Instance]
    queue: Queue | None = None  # without one, version 2 takes the database road too
    leadership: Sequence[Leadership] = ()  # in order of preference; without any, it leads alone
    receiver: Receiver | None = None
    telemetry: Telemetry = field(default_factory=Silence)
    domain_of: Callable[[Job], str | None] = _no_domain  # whose circuit breaker a job's calls go through


def chance() -> float:
    """Uniform in [0, 1)."""
    return int.from_bytes(os.urandom(6), "big") / 2**48


class Engine:
    """Made once per process. `actors` are to be run side by side; `begin` goes before, `finish` after."""

    def __init__(self, around: Surroundings, config: EngineConfig) -> None:
        db, clock = around.db, around.clock
        self.config = config
        self.counters = counters = Counters()
        self._around = around
        self.elector = Elector(
            db=db,
            clock=clock,
            leadership=around.leadership,
            counters=counters,
            telemetry=around.telemetry,
            instance_id=config.instance_id,
        )
        self.breakers = Breakers(
            db=db,
            clock=clock,
            telemetry=around.telemetry,
            domain_of=around.domain_of,
            policy=config.breaker,
        )
        self.feeder = Feeder(clock=clock)
        self.triggers = (
            Triggers(db=db, clock=clock, receiver=around.receiver, telemetry=around.telemetry)
            if around.receiver is not None
            else None
        )
        self.settler = Settler(db=db, clock=clock, counters=counters, chance=chance)
        self.leases = Leases(
            db=db,
            clock=clock,
            settler=self.settler,
            counters=counters,
            config=LeaseConfig(
                lease=config.lease, stop_grace=config.stop_grace + timedelta(seconds=5), timers=config.timers
            ),
        )
        self.reporter = Reporter(db=db, clock=clock)
        runner = Runner(
            target=around.target, leases=self.leases, reporter=self.reporter, grace=config.stop_grace
        )
        self.worker = Worker(
            db=db,
            clock=clock,
            counters=counters,
            hands=Hands(leases=self.leases, runner=runner, settler=self.settler),
            config=WorkerConfig(instance_id=config.instance_id, slots=config.slots, lease=config.lease),
        )
        self.planner = Planner(
            db=db,
            clock=clock,
            counters=counters,
            config=PlannerConfig(lookahead=config.lookahead, check_interval=config.check_interval),
            fence=self.elector.fence,
        )
        self.watcher = Watcher(
            db=db, clock=clock, counters=counters, config=WatcherConfig(check_interval=config.check_interval)
        )
        self.recoverer = Recoverer(
            db=db,
            clock=clock,
            leases=self.leases,
            counters=counters,
            chance=chance,
            config=RecovererConfig(lease=config.lease),
        )
        self.sweeper = Sweeper(
            db=db, clock=clock, counters=counters, knows=around.knows, config=SweeperConfig()
        )
        self.pruner = Pruner(
            db=db,
            clock=clock,
            counters=counters,
            config=PrunerConfig(keep_runs=config.keep_runs, keep_days=config.keep_days),
        )
        self.canceller = Canceller(
            db=db, clock=clock, instance_id=config.instance_id, cancel=around.cancel_remote
        )
        self.zones = Zones(db=db, clock=clock)
        self.heartbeat = Heartbeat(db=db, clock=clock, describe=around.describe)

    @property
    def streaming(self) -> bool:
        """Does version 2 take the streams here and now?"""
        return False

    @property
    def actors(self) -> list[Actor]:
        """Those of this instance's roles, in the order of the road."""
        found: list[Actor] = [self.heartbeat]
        if Role.SCHEDULER in self.config.roles:
            led: list[Actor] = [self.zones, self.watcher, self.planner, self.sweeper, self.pruner]
            led += [self.feeder] if self._around.queue is not None else []
            led += [self.triggers] if self.triggers is not None else []
            for actor in led:
                actor.gate = self.elector
            found += [self.elector, *led, self.recoverer]
        if Role.WORKER in self.config.roles:
            found += [self.settler, self.leases, self.reporter, self.canceller, self.breakers, self.worker]
        return found

    async def begin(self) -> None:
        """What must be true before the first claim."""
        if self.config.configured_id and Role.WORKER in self.config.roles:
            await self.recoverer.take_back(self.config.instance_id)
        await self.heartbeat.run_once()

    async def finish(self, grace: timedelta) -> bool:
        """Claim no more, let runs end within the grace, hand back the rest; is everything durable?

        The actors must still be running.
        """
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await self.worker.drain()
        except TimeoutError:
            log.warning("handing back what still runs", action="shutdown", running=len(self.leases))
            self.worker.release()
        try:
            async with asyncio.timeout((self.config.stop_grace * 2 + timedelta(seconds=10)).total_seconds()):
                await self.worker.drain()
                await self.settler.drained()
                await self.elector.resign()
                await self.heartbeat.stop()
        except Exception as exc:
            left = len(self.leases)
            log.error("not everything is durable", action="shutdown", left=left, error=repr(exc))
            return False
        return True
