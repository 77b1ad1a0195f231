"""Keeps the leases of everything that runs here, in one batch, and stops what may not go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog

from noonday.clock import Clock
from noonday.domain.execution import Execution, ExecutionId
from noonday.engine.acker import Acker
from noonday.engine.counters import Counters
from noonday.engine.held import Held, Stop, ids, outcome_of
from noonday.engine.loop import Actor, Wish
from noonday.engine.settler import Settler
from noonday.ports import Claim, Delivery, Telemetry
from noonday.store import executions
from noonday.store.database import Database
from noonday.store.notices import CANCEL
from noonday.telemetry.masking import masked

log = structlog.get_logger(__name__)


_SHORT: Final = 0.1  # seconds; attempts that end sooner never cost a timer


class Timers:
    """A timer for each attempt that lasts; those that soon end share one that looks who is left."""

    def __init__(self, clock: Clock, held: Mapping[ExecutionId, Held]) -> None:
        self._clock = clock
        self._held = held
        self._waiting = False  # for the moment of the next look

    def watch(self, held: Held, now: float) -> None:
        soon = now + 2 * _SHORT
        if held.deadline < soon or held.trusted_until < soon:
            held.set_timer(now)
            return
        if not self._waiting:
            self._waiting = True
            asyncio.get_running_loop().call_later(_SHORT, self._look)

    def _look(self) -> None:
        self._waiting = False
        now = self._clock.monotonic()
        for held in self._held.values():
            if held.timer is None:
                held.set_timer(now)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseConfig:
    lease: timedelta = timedelta(seconds=30)
    stop_grace: timedelta = timedelta(seconds=10)  # how long a stopped attempt may take to end
    timers: bool = True  # off under a clock that is moved by hand: then only run_once looks

    @property
    def trust(self) -> float:
        """Seconds; shorter than the lease, so that an attempt is being stopped before another may start."""
        return self.lease.total_seconds() * 0.9


class Leases(Actor):
    """Renews at a third of the lease, and at once when somebody asks for a cancel.

    The trust in a lease is counted from the monotonic clock read *before* the renewal was sent. When no
    renewal has come through by then the attempt is stopped here, before anybody else may start it.
    """

    name = "leases"

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        settler: Settler,
        acker: Acker,
        counters: Counters,
        telemetry: Telemetry,
        config: LeaseConfig,
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(CANCEL))
        self._db = db
        self._settler = settler
        self._acker = acker
        self._counters = counters
        self._telemetry = telemetry
        self._config = config
        self._held: dict[ExecutionId, Held] = {}
        self._timers = Timers(clock, self._held)
        self.leave: Callable[[Held], None] | None = None  # gives a slot free

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, execution_id: ExecutionId) -> bool:
        return execution_id in self._held

    def __iter__(self) -> Iterator[Held]:
        return iter(tuple(self._held.values()))

    def hold(
        self, claims: Iterable[Claim], claimed_at: float, deliveries: Mapping[ExecutionId, Delivery]
    ) -> list[Held]:
        """`claimed_at` is the monotonic clock as it was before the claim was sent."""
        until = claimed_at + self._config.trust
        held = [
            Held(claim, until, claimed_at, deliveries.get(claim.execution.id) if deliveries else None)
            for claim in claims
        ]
        for one in held:
            self._held[one.id] = one
        return held

    def start(self, held: Held, now: float) -> None:
        """The attempt begins: from now on it has a time-out."""
        claim = held.claim
        held.started_at = started_at = self.clock.now()
        self._telemetry.started(claim, started_at - _due_at(claim.execution))
        held.began, held.timeout = now, claim.job.timeout
        held.deadline = now + held.timeout.total_seconds()
        if self._config.timers:
            self._timers.watch(held, now)

    def look_at(self, held: Held) -> float:
        """Stop it if its time is over: even before it begins, for a claim may take longer than its lease.

        Returns the moment of the look."""
        now = self.clock.monotonic()
        if held.trusted_until <= now:
            self._lose(held, "it could not be renewed in time")
        elif held.deadline <= now:
            held.stop(Stop.TIME_OUT, now)
        return now

    def ran_out(self, held: Held) -> None:
        """The timer of the attempt rang: was it the time-out or the end of the trust?"""
        if held.trusted_until < held.deadline:
            self._lose(held, "it could not be renewed in time")
        else:
            held.stop(Stop.TIME_OUT, self.clock.monotonic())

    def drop(self, held: Held) -> None:
        if self._held.get(held.id) is held:
            del self._held[held.id]

    async def run_once(self) -> Wish:
        try:
            if self._held:
                await self._renew()
        finally:
            self._look_at_the_clock()
        stopping = any(one.stopped and not one.ended for one in self._held.values())
        return min(self._config.lease / 3, self._config.stop_grace) if stopping else self._config.lease / 3

    async def _renew(self) -> None:
        renewing = {one.id: one for one in self._held.values() if one.renewable}
        before = self.clock.monotonic()
        expires_at = self.clock.now() + self._config.lease
        tokens = {execution_id: one.token for execution_id, one in renewing.items()}
        # A database that hangs is a database that failed: the loop must come back to look at the clock.
        async with asyncio.timeout(self._config.lease.total_seconds() / 3):
            answers = await self._db.write(partial(executions.renew, held=tokens, expires_at=expires_at))
        for execution_id, one in renewing.items():
            cancel = answers.get(execution_id)
            if cancel is None:
                self._lose(one, "somebody else has it")
                continue
            one.trusted_until = before + self._config.trust
            if self._config.timers:
                one.set_timer(self.clock.monotonic())
            if cancel:
                one.stop(Stop.CANCEL, self.clock.monotonic())
        self._acker.keep(one.delivery for one in renewing.values() if one.delivery is not None)

    def _look_at_the_clock(self) -> None:
        now = self.clock.monotonic()
        grace = self._config.stop_grace.total_seconds()
        for one in tuple(self._held.values()):
            self.look_at(one)
            if one.stopped and not one.ended and now - one.stopped_at > grace:
                self._abandon(one)

    def _lose(self, one: Held, why: str) -> None:
        if one.ended or one.stopped is Stop.LOST:
            return
        one.stop(Stop.LOST, self.clock.monotonic())
        self._counters.lease_losses += 1
        self._telemetry.lease_lost()
        log.warning(
            "a lease is gone: the attempt is stopped and not reported",
            action="lease.lost",
            why=why,
            **ids(one.claim),
        )

    def _abandon(self, one: Held) -> None:
        """It was told to stop and does not: report it without it, so that neither row nor slot is stuck."""
        one.ended = True
        self._counters.abandoned += 1
        log.error(
            "an attempt ignores that it was stopped and is left to itself",
            action="attempt.abandoned",
            why=str(one.stopped),
            **ids(one.claim),
        )
        outcome = outcome_of(one)
        if outcome is None:
            self._acker.done(one.delivery)
        else:
            outcome = masked(outcome, one.claim.job, one.claim.execution)
            ending = one.ending(outcome, self.clock.now())
            if one.started_at is not None:
                took = self.clock.now() - one.started_at
                self._telemetry.ended(one.claim, outcome, took.total_seconds())
            self._settler.offer(ending, one.claim.execution.attempt, lambda _: self._acker.done(one.delivery))
        self.drop(one)
        if self.leave is not None:
            self.leave(one)


def _due_at(execution: Execution) -> datetime:
    """Its moment, or the later one that jitter or a window has moved it to."""
    moved, planned = execution.available_at, execution.scheduled_for
    return planned if moved is None or moved < planned else moved
