"""The slots of this instance: what runs, what is about to, and how much more may be claimed."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

import structlog

from noonday.clock import Clock
from noonday.domain.execution import ExecutionId
from noonday.domain.outcome import Outcome
from noonday.engine.acker import Acker
from noonday.engine.breath import Breath
from noonday.engine.coming import Coming
from noonday.engine.doubts import Doubts
from noonday.engine.held import Held, Stop, ids
from noonday.engine.leases import Leases
from noonday.engine.pace import Pace
from noonday.engine.runner import Runner
from noonday.engine.settler import Settler
from noonday.ports import Claim, Delivery, Telemetry
from noonday.telemetry import logs

log = structlog.get_logger(__name__)

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]

LONGEST_WAIT: Final = 1.0  # seconds that a claim may wait here for a slot before it is handed back
_UNSETTLED: Final = 5  # claims' worth of ends that may wait to be durable: after a crash they run once more
_GATHER: Final = 0.05  # seconds between two claims at the most, where so much is at hand that there is time
_IN_A_ROW: Final = 16  # runs in one task: then the event loop looks after everybody else
_NO_DELIVERIES: Final[Mapping[ExecutionId, Delivery]] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hands:
    """What a claim is worked with."""

    leases: Leases
    runner: Runner
    settler: Settler
    acker: Acker
    doubts: Doubts


class Slots:
    """Shared by the claimers of both roads. Room is reserved while a claim is on its way, so that together
    they never claim more than there is; who found none is woken in the order of asking, so that both get on.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        hands: Hands,
        telemetry: Telemetry,
        size: int,
        most: int = 500,
        breath: Breath,
        hasten: Callable[[bool], None] | None = None,  # told whether runs wait for their moment
    ) -> None:
        self.size = size
        self.draining = False
        self.spawn: Spawn | None = None  # set while the worker runs
        self._clock = clock
        self.hands = hands
        self._leases, self._runner, self._settler = hands.leases, hands.runner, hands.settler
        self._leases.leave = self._leave
        self._settler.settled = self._settled
        self._telemetry = telemetry
        self.most = most  # in one claim
        self._pace = Pace(slots=size, most=most)
        self._breath = breath
        self._running: set[Held] = set()
        self._ready: deque[Held] = deque()  # claimed, about to start
        self._coming = Coming(clock, self._come, hasten)
        self._reserved = 0
        self._made_durable = 0  # ends, since the newest claim
        self._unclaimed = asyncio.Event()  # set while no claim is on its way
        self._unclaimed.set()
        self._asking: list[asyncio.Event] = []
        self._patient: list[asyncio.Event] = []
        self._changed = asyncio.Event()

    @property
    def busy(self) -> int:
        return len(self._running)

    def has(self, held: Held) -> bool:
        """Is it in a slot, whether its target has it already or not?"""
        return held in self._running

    @property
    def waiting(self) -> int:
        """Claims for which no slot is free yet, or whose moment has not come."""
        return len(self._ready) + len(self._coming)

    @property
    def room(self) -> int:
        """How many may be claimed now: those that start within a blink."""
        return self._room(self._pace.ahead, len(self._ready) + self._coming.near)

    def room_for(self, crowd: int) -> int:
        """As many of a crowd may be claimed ahead; it takes no room from what is due meanwhile."""
        return self._room(max(self._pace.ahead, crowd), self.waiting)

    def welcomes(self, crowd: int) -> bool:
        """Not where runs are known to be slow: it would keep the slots from what is due before."""
        return crowd > 0 and self._pace.may_be_fast

    def _room(self, ahead: int, waiting: int) -> int:
        if self.draining or (self._ready and len(self._ready) > ahead // 2):
            return 0
        free = self.size + ahead - len(self._running) - waiting - self._reserved
        if len(self._settler) > _UNSETTLED * self.most:
            free = min(free, self._made_durable - self._reserved)
        return max(0, min(free, self.most))

    def rest(self, claimed_at: float, wake: asyncio.Event) -> timedelta:
        """How long the next claim may wait, unless it is woken: with much at hand and a little room, until
        there is room that is worth it; `claimed_at`: the newest one, of the monotonic clock."""
        left = claimed_at + _GATHER - self._clock.monotonic()
        if left <= 0 or not self.room or not self._sated:
            return timedelta()
        _add(self._patient, wake)
        return timedelta(seconds=left)

    @property
    def _sated(self) -> bool:
        """Is so much at hand that a claim for the little room there is may wait until there is more?"""
        ahead, waiting = self._pace.ahead, len(self._ready) + self._coming.near
        return waiting > ahead // 2 and self._room(ahead, waiting) < ahead // 4

    @property
    def claiming(self) -> bool:
        """Is a claim on its way that may leave room?"""
        return self._reserved > 0

    @contextmanager
    def reserve(self, crowd: int = 0) -> Iterator[int]:
        """All the room there is, for a claim on its way; `crowd`: as for `room_for`."""
        room = self.room_for(crowd) if crowd else self.room
        self._reserved += room
        if room:
            self._unclaimed.clear()
        try:
            yield room
        finally:
            self._reserved -= room
            if not self._reserved:
                self._unclaimed.set()
            self._offer_room()

    def ask(self, wake: asyncio.Event) -> None:
        """Wake me once there is room."""
        _add(self._asking, wake)

    def begin(
        self,
        claims: Sequence[Claim],
        claimed_at: float,
        deliveries: Mapping[ExecutionId, Delivery] = _NO_DELIVERIES,
    ) -> None:
        """Start them at their moments, as slots are free; `claimed_at`: monotonic, from before the claim."""
        self._made_durable = 0
        held = self.hands.leases.hold(claims, claimed_at, deliveries)
        self._ready.extend(self._coming.add(held))
        if self.draining:
            self.hand_back_what_waits()
        self._fill()

    def _come(self, due: Sequence[Held]) -> None:
        now = self._clock.monotonic()
        for held in due:
            held.waiting_since = now  # before its moment it did not wait for a slot
        self._ready.extend(due)
        self._fill()
        if self.draining:
            self.hand_back_what_waits()

    async def drain(self) -> None:
        """Claim no more and return when everything that runs here has ended and is durable."""
        self.draining = True
        self.hand_back_what_waits()
        await self._unclaimed.wait()
        while len(self.hands.leases):
            self._changed.clear()
            await self._changed.wait()

    def forsake(self) -> None:
        """The worker itself is ended: what waits here is left to its lease."""
        self._ready.clear()
        self._coming.clear()

    def resume(self) -> None:
        self.draining = False
        self._offer_room()

    def release(self) -> None:
        """Stop everything that runs here, to be handed back; `drain` returns when that is done."""
        for held in self.hands.leases:
            held.stop(Stop.SHUTDOWN, self._clock.monotonic())
        for held in self._coming.clear():
            self._start(held)

    def hand_back_what_waits(self) -> None:
        """Claims that cannot start soon belong to whoever has a slot for them. Those whose moment is near
        stay: others would hear of them too late."""
        now = self._clock.monotonic()
        while self._ready and (self.draining or now - self._ready[0].waiting_since > LONGEST_WAIT):
            held = self._ready.popleft()
            held.stop(Stop.NO_SLOT, now)
            self._pace.disappoint()
            self._start(held)

    def _fill(self) -> None:
        while self._ready and len(self._running) < self.size:
            self._start(self._ready.popleft())
            if self._ready:
                self._breath.draw()

    def _start(self, held: Held) -> None:
        assert self.spawn is not None, "an attempt needs a group to run in"
        self._running.add(held)
        self.spawn(self._work(held))

    async def _work(self, held: Held) -> None:
        """A claim from start to end, then others that wait: to end a task and to begin another takes longer
        than a short run. Not after code that may have left something behind in the task, nor while the store
        has answered somebody, who could ask for more at once.
        """
        task = asyncio.current_task()
        assert task is not None
        left = _IN_A_ROW
        while await self._run(held, task) and self._ready and len(self._running) < self.size and left:
            if self._breath.expected:
                break
            left -= 1
            held = self._ready.popleft()
            self._running.add(held)
            self._breath.draw()
        self._fill()

    async def _run(self, held: Held, task: asyncio.Task[Any]) -> bool:
        """The end is made durable meanwhile; a failure here is this claim's alone. Says whether nothing of it
        can be left in the task."""
        logs.tell(held.ids)  # in all that the attempt logs
        try:
            outcome = await self._runner.run(held, task)
            took = 0.0
            if held.started_at is not None:
                took = self._clock.monotonic() - held.began
                self._pace.ran(took)
            self._vacate(held)
            if outcome is not None:
                ending = held.ending(outcome, self._clock.now())
                then = partial(self._durable, held, outcome, took)
                self._settler.offer(ending, held.claim.execution.attempt, then)
                return held.tidy and not held.cut
            self.hands.acker.done(held.delivery)
        except asyncio.CancelledError:
            self._drop(held)
            raise
        except Exception:
            log.exception("an attempt went wrong in the worker", action="worker.failed", **ids(held.claim))
        self._drop(held)
        return False

    def _durable(self, held: Held, outcome: Outcome, took: float, settled: bool) -> None:
        try:
            if settled:
                self._telemetry.ended(held.claim, outcome, took)
            if held.delivery is not None:
                self.hands.acker.done(held.delivery)
        finally:
            self._forget(held)

    def _drop(self, held: Held) -> None:
        self._leave(held)
        self._forget(held)

    def _forget(self, held: Held) -> None:
        self._leases.drop(held)
        if self.draining:
            self._changed.set()

    def _leave(self, held: Held) -> None:
        """It is left to itself or went wrong: its slot is free, and nobody else will say so."""
        if held in self._running:
            self._vacate(held)
            self._changed.set()
            self._fill()

    def _vacate(self, held: Held) -> None:
        """The slot is free as soon as the attempt is over; its ending becomes durable meanwhile."""
        self._running.discard(held)
        if self._asking or self._patient:
            self._offer_room()

    def _settled(self, ends: int) -> None:
        """Where too many wait to be durable, as many may be claimed."""
        self._made_durable += ends
        self._offer_room()

    def _offer_room(self) -> None:
        if self._asking and self.room > 0:
            _wake(self._asking)
        if self._patient and not self._sated and self.room > 0:
            _wake(self._patient)


def _add(asking: list[asyncio.Event], wake: asyncio.Event) -> None:
    if wake not in asking:
        asking.append(wake)


def _wake(asking: list[asyncio.Event]) -> None:
    for wake in asking:
        wake.set()
    asking.clear()
