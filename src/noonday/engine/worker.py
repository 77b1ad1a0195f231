"""Claims what is due for the free slots of this instance and runs each claim as a task of its own."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.engine.counters import Counters
from noonday.engine.held import Held, Stop, ids
from noonday.engine.leases import Leases
from noonday.engine.loop import Actor, Wish
from noonday.engine.pace import Pace
from noonday.engine.runner import Runner
from noonday.engine.settler import Settler
from noonday.ports import Claim
from noonday.store import executions
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from noonday.store.notices import WORK

log = structlog.get_logger(__name__)

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

_LOCKED_ELSEWHERE = timedelta(milliseconds=50)  # due, but not ours to take: look again soon, not at once
_LONGEST_WAIT = 1.0  # seconds that a claim may wait here for a slot before it is handed back


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    instance_id: str
    slots: int = 10
    lease: timedelta = timedelta(seconds=30)
    ageing: timedelta = timedelta(seconds=60)  # waiting this long is worth one lane
    claim_batch: int = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What a worker works with."""

    leases: Leases
    runner: Runner
    settler: Settler


class Worker(Actor):
    """Sleeps until the next execution is available; woken by new work and by slots that become free."""

    name = "worker"

    def __init__(
        self, *, db: Database, clock: Clock, counters: Counters, hands: Hands, config: WorkerConfig
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(WORK))
        self.draining = False
        self.spawn: Spawn | None = None  # set while it runs
        self._db = db
        self._counters = counters
        self._hands = hands
        self._config = config
        self._pace = Pace(slots=config.slots, most=config.claim_batch)
        self._hungry = True  # there may be more to claim than there was room for
        self._running: set[Held] = set()
        self._ready: deque[Held] = deque()  # claimed, about to start
        self._unclaimed = asyncio.Event()  # set while no claim is on its way
        self._unclaimed.set()
        self._changed = asyncio.Event()

    @property
    def slots(self) -> int:
        return self._config.slots

    @property
    def busy(self) -> int:
        return len(self._running)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as attempts:
            self.spawn = attempts.create_task
            await super().run()

    async def run_once(self) -> Wish:
        self._hand_back_what_waits()
        limit = self._room()
        if limit <= 0:
            self._hungry = True
            return timedelta(seconds=_LONGEST_WAIT) if self._ready else None
        asked_at = self.clock.now()
        claims, next_at = await self._claim(limit, asked_at)
        self._hungry = len(claims) == limit
        if self._hungry:
            return timedelta()
        if not claims and next_at is not None and next_at <= asked_at:
            return _LOCKED_ELSEWHERE
        return next_at

    async def drain(self) -> None:
        """Claim no more and return when everything that runs here has ended and is durable."""
        self.draining = True
        self._hand_back_what_waits()
        await self._unclaimed.wait()
        while len(self._hands.leases):
            self._changed.clear()
            await self._changed.wait()

    def resume(self) -> None:
        self.draining = False
        self.wake.set()

    def release(self) -> None:
        """Stop everything that runs here, to be handed back; `drain` returns when that is done."""
        for held in self._hands.leases:
            held.stop(Stop.SHUTDOWN, self.clock.monotonic())

    def _room(self) -> int:
        if self.draining:
            return 0
        ahead = self._pace.ahead
        if self._ready and len(self._ready) > ahead // 2:
            return 0
        room = self._config.slots + ahead - len(self._running) - len(self._ready)
        return min(room, self._config.claim_batch)

    async def _claim(self, limit: int, now: datetime) -> tuple[list[Claim], datetime | None]:
        self._unclaimed.clear()
        try:
            claimed_at = self.clock.monotonic()  # before the lease is asked for
            order = ClaimOrder(
                instance_id=self._config.instance_id,
                limit=limit,
                now=now,
                lease=self._config.lease,
                ageing=self._config.ageing,
            )
            claims, next_at = await self._db.write(partial(_claim_and_look_ahead, order))
            self._counters.claimed += len(claims)
            self._ready.extend(self._hands.leases.hold(claims, claimed_at))
        finally:
            self._unclaimed.set()
        if self.draining:
            self._hand_back_what_waits()
        self._fill_slots()
        return claims, next_at

    def _fill_slots(self) -> None:
        while self._ready and len(self._running) < self._config.slots:
            self._start(self._ready.popleft())

    def _start(self, held: Held) -> None:
        assert self.spawn is not None, "an attempt needs a group to run in"
        self._running.add(held)
        held.leave = partial(self._leave, held)
        held.task = self.spawn(self._work(held))

    def _hand_back_what_waits(self) -> None:
        """Claims that cannot start soon belong to whoever has a slot for them."""
        now = self.clock.monotonic()
        while self._ready and (self.draining or now - self._ready[0].waiting_since > _LONGEST_WAIT):
            held = self._ready.popleft()
            held.stop(Stop.NO_SLOT, now)
            self._pace.disappoint()
            self._start(held)

    async def _work(self, held: Held) -> None:
        """One claim from start to durable end; a failure here is this claim's alone."""
        structlog.contextvars.bind_contextvars(**ids(held.claim))  # for all that the attempt logs
        try:
            began = self.clock.monotonic()
            outcome = await self._hands.runner.run(held)
            if held.run is not None:
                self._pace.ran(self.clock.monotonic() - began)
            self._leave(held)
            if outcome is not None:
                ending = held.ending(outcome, self.clock.now())
                await self._hands.settler.settle(ending, held.claim.execution.attempt)
        except asyncio.CancelledError:
            self._ready.clear()  # the worker itself is ended: what waits here is left to its lease
            raise
        except Exception:
            log.exception("an attempt went wrong in the worker", action="worker.failed", **ids(held.claim))
        finally:
            self._leave(held)
            self._hands.leases.drop(held)
            self._changed.set()

    def _leave(self, held: Held) -> None:
        """The slot is free as soon as the attempt is over; its ending becomes durable meanwhile."""
        if held in self._running:
            self._running.discard(held)
            self._fill_slots()
            if self._hungry and self._room() > 0:
                self.wake.set()


def _claim_and_look_ahead(order: ClaimOrder, conn: Connection) -> tuple[list[Claim], datetime | None]:
    return executions.claim(conn, order), executions.next_available_at(conn)
