"""All actors of one instance, put together: which of them run is a matter of its roles."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum

import structlog

from noonday.clock import Clock
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.job import Job
from noonday.engine.acker import Acker
from noonday.engine.breakers import Breakers
from noonday.engine.breath import Breath, hasten
from noonday.engine.canceller import Cancel, Canceller
from noonday.engine.counters import Counters
from noonday.engine.crowds import NEAR
from noonday.engine.doubts import Doubts
from noonday.engine.elector import Elector
from noonday.engine.feeder import Feeder
from noonday.engine.finder import Finder, FinderConfig
from noonday.engine.forgetter import Forgetter, ForgetterConfig
from noonday.engine.gatherer import Gatherer
from noonday.engine.heartbeat import Heartbeat
from noonday.engine.leases import LeaseConfig, Leases
from noonday.engine.loop import Actor
from noonday.engine.outputs import Outputs
from noonday.engine.planner import Planner, PlannerConfig
from noonday.engine.pruner import Pruner, PrunerConfig
from noonday.engine.recoverer import Recoverer, RecovererConfig
from noonday.engine.reporter import Reporter
from noonday.engine.resumer import Resumer
from noonday.engine.runner import Runner
from noonday.engine.settler import Settler
from noonday.engine.slots import Hands, Slots
from noonday.engine.streams import Streams
from noonday.engine.sweeper import Sweeper, SweeperConfig
from noonday.engine.taker import Taker, TakerConfig
from noonday.engine.tallier import Tallier
from noonday.engine.triggers import Triggers
from noonday.engine.unparker import Unparker
from noonday.engine.watcher import Watcher, WatcherConfig
from noonday.engine.worker import Worker, WorkerConfig
from noonday.engine.zones import Zones
from noonday.ports import Leadership, Queue, Receiver, Silence, TargetRunner, Telemetry
from noonday.store import prepared
from noonday.store.database import Database
from noonday.store.instances import DRAINED, DRAINING, RUNNING, Instance

log = structlog.get_logger(__name__)


class Role(StrEnum):
    API = "api"
    SCHEDULER = "scheduler"
    WORKER = "worker"


ALL_ROLES = frozenset(Role)
_RESIGN_WITHIN = 3.0  # seconds
_LEAVE_WITHIN = 3.0
_COMPANY = timedelta(milliseconds=50)
_ROAD_LEAD = timedelta(milliseconds=200)  # for a message, its claim, two clocks and a short stall


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    instance_id: str
    configured_id: bool = False  # given by a person: its former leases are dead by definition
    roles: frozenset[Role] = ALL_ROLES
    slots: int = 10
    queue_batch: int = 500  # messages that one read takes from the streams
    lease: timedelta = timedelta(seconds=30)
    lookahead: timedelta = timedelta(seconds=2)
    lead: timedelta = NEAR  # at most: so long before its moment a run is claimed
    check_interval: timedelta = timedelta(seconds=60)
    stop_grace: timedelta = timedelta(seconds=5)  # how long a target may take to let go
    keep_runs: int = 100
    keep_days: int = 30
    keep_events: int = 10_000
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    timers: bool = True
    own_process: bool = False  # it may say how soon the interpreter changes hands

    @property
    def reach(self) -> timedelta:
        """So far at most is planned ahead."""
        return 4 * self.lookahead

    @property
    def claim_lead(self) -> timedelta:
        return self.lead if self.timers else timedelta()

    @property
    def company(self) -> timedelta:
        """So long ends wait for a claim that takes them along, where both meet at the same jobs."""
        return _COMPANY if self.timers else timedelta()


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
    domain_of: Callable[[Job], str | None] = lambda _: None  # whose circuit breaker a job's calls go through


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
        db.count_skips = around.telemetry.skipped
        self.elector = Elector(
            db=db,
            clock=clock,
            leadership=around.leadership,
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
        self.streams = Streams(queue=around.queue, clock=clock)
        self.acker = Acker(clock=clock, streams=self.streams)
        self.feeder = Feeder(
            clock=clock,
            streams=self.streams,
            counters=counters,
            telemetry=around.telemetry,
            lead=min(config.claim_lead, _ROAD_LEAD),
        )
        self.finder = Finder(
            db=db,
            clock=clock,
            streams=self.streams,
            feeder=self.feeder,
            term=lambda: self.elector.term,
            counters=counters,
            config=FinderConfig(lookahead=config.lookahead, reach=config.reach),
        )
        self.triggers = (
            Triggers(
                db=db,
                clock=clock,
                receiver=around.receiver,
                telemetry=around.telemetry,
                elector=self.elector,
            )
            if around.receiver is not None
            else None
        )
        breath = Breath(db.threads)
        self.settler = Settler(
            db=db, clock=clock, counters=counters, chance=chance, breath=breath, company=config.company
        )
        self.leases = Leases(
            db=db,
            clock=clock,
            settler=self.settler,
            acker=self.acker,
            counters=counters,
            telemetry=around.telemetry,
            config=LeaseConfig(
                lease=config.lease, stop_grace=config.stop_grace + timedelta(seconds=5), timers=config.timers
            ),
        )
        self.reporter = Reporter(db=db, clock=clock, telemetry=around.telemetry)
        self.outputs = Outputs(db=db, clock=clock, tell=config.keep_events > 0)
        runner = Runner(
            target=around.target,
            breakers=self.breakers,
            leases=self.leases,
            reporter=self.reporter,
            outputs=self.outputs,
            grace=config.stop_grace,
        )
        self.slots = Slots(
            clock=clock,
            hands=Hands(
                leases=self.leases,
                runner=runner,
                settler=self.settler,
                acker=self.acker,
                doubts=Doubts(db=db, clock=clock),
            ),
            telemetry=around.telemetry,
            size=config.slots,
            breath=breath,
            hasten=hasten if config.own_process else None,
        )
        self._claim(around, config)
        self.planner = Planner(
            db=db,
            clock=clock,
            counters=counters,
            config=PlannerConfig(
                lookahead=config.lookahead, reach=config.reach, check_interval=config.check_interval
            ),
            feeder=self.feeder,
            telemetry=around.telemetry,
            chance=chance,
            fence=self.elector.fence,
        )
        self._watch(around, config)
        self.recoverer = Recoverer(
            db=db,
            clock=clock,
            leases=self.leases,
            counters=counters,
            chance=chance,
            config=RecovererConfig(lease=config.lease),
        )
        self.sweeper = Sweeper(db=db, clock=clock, counters=counters, config=SweeperConfig())
        self.unparker = Unparker(db=db, clock=clock, knows=around.knows)
        self.pruner = Pruner(
            db=db,
            clock=clock,
            counters=counters,
            config=PrunerConfig(keep_runs=config.keep_runs, keep_days=config.keep_days),
        )
        self.forgetter = Forgetter(db=db, clock=clock, config=ForgetterConfig(keep_events=config.keep_events))
        self.canceller = Canceller(
            db=db, clock=clock, instance_id=config.instance_id, cancel=around.cancel_remote
        )
        self.heartbeat = Heartbeat(db=db, clock=clock, describe=around.describe, obey=self.obey)
        self._ending = False

    def _claim(self, around: Surroundings, config: EngineConfig) -> None:
        """Who brings work to the slots, each from another place."""
        db, clock, counters = around.db, around.clock, self.counters
        claims = WorkerConfig(instance_id=config.instance_id, lease=config.lease, lead=config.claim_lead)
        self.worker = Worker(
            db=db, clock=clock, counters=counters, slots=self.slots, streams=self.streams, config=claims
        )
        self.gatherer = Gatherer(
            db=db, clock=clock, counters=counters, slots=self.slots, streams=self.streams, config=claims
        )
        self.taker = Taker(
            db=db,
            clock=clock,
            streams=self.streams,
            slots=self.slots,
            counters=counters,
            telemetry=around.telemetry,
            config=TakerConfig(
                instance_id=config.instance_id,
                lease=config.lease,
                wait=timedelta(seconds=1) if config.timers else timedelta(),
                batch=config.queue_batch,
                lead=config.claim_lead,
            ),
        )

    def _watch(self, around: Surroundings, config: EngineConfig) -> None:
        """What the leader sees to beside planning."""
        db, clock, counters = around.db, around.clock, self.counters
        self.watcher = Watcher(
            db=db,
            clock=clock,
            counters=counters,
            config=WatcherConfig(check_interval=config.check_interval),
            fence=self.elector.fence,
        )
        self.resumer = Resumer(
            db=db,
            clock=clock,
            counters=counters,
            check_interval=config.check_interval,
            fence=self.elector.fence,
        )
        self.zones = Zones(db=db, clock=clock, fence=self.elector.fence)
        self.tallier = Tallier(db=db, clock=clock, fence=self.elector.fence)

    @property
    def streaming(self) -> bool:
        """Does version 2 take the streams here and now?"""
        return self.streams.up

    @property
    def actors(self) -> list[Actor]:
        """Those of this instance's roles, in the order of the road."""
        found: list[Actor] = [self.heartbeat, self.breakers]
        streaming = self._around.queue is not None
        found += [self.streams] if streaming else []
        if Role.SCHEDULER in self.config.roles:
            led: list[Actor] = [self.zones, self.watcher, self.resumer, self.planner, self.sweeper]
            led += [self.pruner, self.forgetter, self.tallier]
            led += [self.finder] if streaming else []
            for actor in led:
                actor.gate = self.elector
            found += [self.elector, *led, self.recoverer]
            found += [self.triggers] if self.triggers is not None else []  # hang up when they lead no more
            found += [self.feeder] if streaming else []  # whoever leads no more keeps what it pledged
        if Role.WORKER in self.config.roles:
            found += [self.settler, self.leases, self.reporter, self.outputs, self.canceller, self.unparker]
            found += [self.worker, *([self.gatherer, self.taker, self.acker] if streaming else [])]
        return found

    async def begin(self) -> None:
        """What must be true before the first claim."""
        await self._around.db.read(prepared.make_all)
        if self.config.configured_id and Role.WORKER in self.config.roles:
            await self.recoverer.take_back(self.config.instance_id)
        await self.heartbeat.begin()

    def obey(self, draining: bool) -> None:
        """People want it to drain, or to take work again; an instance that is about to end takes none."""
        if self._ending or draining == self.slots.draining:
            return
        log.info("draining" if draining else "taking work again", action="drain" if draining else "resume")
        if draining:
            self.slots.draining = True
        else:
            self.slots.resume()
        for claimer in (self.worker, self.gatherer, self.taker):
            claimer.wake.set()

    @property
    def state(self) -> str:
        if not self.slots.draining:
            return RUNNING
        return DRAINING if len(self.leases) else DRAINED

    async def finish(self, grace: timedelta) -> bool:
        """Claim no more, let runs end within the grace, hand back the rest; is everything durable?

        The actors must still be running. Another instance plans from the first moment on: what this one had
        planned is in the store, and what it had pledged to the road is found missing there and put back.
        """
        self._ending = True
        async with asyncio.TaskGroup() as group:
            group.create_task(self._hand_over(), name="hand over")
            await self._let_finish(grace)
        try:
            async with asyncio.timeout((self.config.stop_grace * 2 + timedelta(seconds=10)).total_seconds()):
                await self.slots.drain()
                await self.settler.drained()
                await self._leave_the_road()
                await self.heartbeat.stop()
        except Exception as exc:
            left = len(self.leases)
            log.error("not everything is durable", action="shutdown", left=left, error=repr(exc))
            return False
        return True

    async def _let_finish(self, grace: timedelta) -> None:
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await self.slots.drain()
        except TimeoutError:
            log.warning("handing back what still runs", action="shutdown", running=len(self.leases))
            self.slots.release()

    async def _leave_the_road(self) -> None:
        """Messages go back or are acknowledged; what the road does not hear in time, the others find out."""
        if self.streams.up and Role.WORKER in self.config.roles:
            self.taker.wake.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(_LEAVE_WITHIN):
                    await self.taker.drained()
                    await self.acker.drained()

    async def _hand_over(self) -> None:
        """Whoever cannot be told finds out by himself when the lease of the leader is over."""
        try:
            async with asyncio.timeout(_RESIGN_WITHIN):
                await self.elector.resign()
        except Exception as exc:
            log.warning("could not resign as leader", action="shutdown", error=repr(exc))
