"""Takes messages from the streams for the free slots of this instance; the claim in the store decides."""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

import structlog

from noonday.clock import Clock
from noonday.domain.errors import RoadDown
from noonday.domain.execution import ExecutionId, Road
from noonday.engine.counters import Counters
from noonday.engine.loop import Actor, Wish, is_outage
from noonday.engine.meetings import Meetings
from noonday.engine.slots import LONGEST_WAIT, Slots
from noonday.engine.streams import Streams
from noonday.ports import Delivery, Telemetry
from noonday.store import executions
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder, Taken

log = structlog.get_logger(__name__)

_AGAIN: Final = 0.01  # seconds until a row that another transaction holds is asked for again
_RESCUE_EVERY: Final = 2.0  # seconds
_ABANDONED: Final = 100  # messages taken over in one look


@dataclass(frozen=True, slots=True, kw_only=True)
class TakerConfig:
    instance_id: str
    lease: timedelta = timedelta(seconds=30)
    wait: timedelta = timedelta(seconds=1)  # short, for a drain and a hanging road wait for it too
    rescue_after: timedelta = timedelta(seconds=3)  # overdue, and nothing of it on the road
    batch: int = 500  # messages in one read
    lead: timedelta = timedelta()  # so long before their moment messages may come


@dataclass(slots=True)
class _Kept:
    """A delivery in our hands that is not decided yet."""

    delivery: Delivery
    try_at: float  # of the monotonic clock
    again: bool = False  # it was in somebody's hands before


class Taker(Actor):
    """Waits on the road while slots are free. What it cannot start it hands back at once."""

    name = "taker"

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        streams: Streams,
        slots: Slots,
        counters: Counters,
        telemetry: Telemetry,
        config: TakerConfig,
    ) -> None:
        super().__init__(clock=clock)
        streams.watch(self.wake)
        self._db = db
        self._streams = streams
        self._slots = slots
        self._leases = slots.hands.leases
        self._acker = slots.hands.acker
        self._doubts = slots.hands.doubts
        self._counters = counters
        self._telemetry = telemetry
        self._config = config
        self._meetings = Meetings(clock=clock, doubts=self._doubts, settler=slots.hands.settler)
        self._kept: dict[ExecutionId, _Kept] = {}
        self._empty = asyncio.Event()  # set while nothing of the road is in its hands
        self._empty.set()
        self._eager = False  # there is more on the road than there was room for
        self._epoch = 0
        own = zlib.crc32(config.instance_id.encode()) / 2**32  # so that not all look at once
        self._look_every = config.lease.total_seconds() / 2 * (0.75 + own / 2)
        self._look_at = self._rescue_at = self._claimed_at = float("-inf")

    async def drained(self) -> None:
        """Wait until everything undecided was handed back; the slots must be draining."""
        await self._empty.wait()

    async def run_once(self) -> Wish:
        self._slots.hand_back_what_waits()
        self._empty.clear()
        try:
            return await self._pass()
        except RoadDown:  # the rows go over the database road meanwhile
            self._kept.clear()
            return None
        finally:
            if not self._kept:
                self._empty.set()

    async def _pass(self) -> Wish:
        await self._doubts.resolve()
        if not self._streams.up:
            raise RoadDown
        if self._slots.draining:
            self._slots.ask(self.wake)  # before anything is awaited: what becomes free meanwhile is told
            await self._hand_back([*self._kept.values()])
            return None
        await self._look_back()
        if not self._slots.room:
            return await self._without_room()
        if not self._due() and (rest := self._slots.rest(self._claimed_at, self.wake)):
            return min(self._next_try(), rest)
        if not self._eager and not self._due():
            await self._take(self._slots.room, min(self._config.wait, self._next_try()))
        others = self._slots.claiming
        with self._slots.reserve() as room:
            if self._eager:
                await self._take(room, timedelta())
            due = self._due()
            await self._decide(due, room, others)
        if not due and not self._kept:
            await self._rescue()
        at_once = due or (self._config.wait and not self._due(within=_AGAIN))
        return timedelta() if at_once else self._next_try()

    async def _without_room(self) -> Wish:
        self._slots.ask(self.wake)
        if not self._slots.claiming:
            await self._hand_back(self._due())
        if self._kept:
            return max(self._next_try(), timedelta(seconds=_AGAIN))
        return timedelta(seconds=LONGEST_WAIT) if self._slots.waiting else None

    def _due(self, within: float = 0.0) -> list[_Kept]:
        until = self.clock.monotonic() + within
        return [one for one in self._kept.values() if one.try_at <= until]

    def _next_try(self) -> timedelta:
        """Until one of those that are kept is due; a day if there is none."""
        first = min((one.try_at for one in self._kept.values()), default=None)
        if first is None:
            return timedelta(days=1)
        return timedelta(seconds=max(first - self.clock.monotonic(), 0.0))

    async def _look_back(self) -> None:
        """What was in hands before: in ours when the road or the process broke, or in those of the dead."""
        now, epoch, limit = self.clock.monotonic(), self._streams.epoch, min(_ABANDONED, self._slots.room)
        if self._epoch != epoch:
            self._receive(await self._streams.ask(lambda queue: queue.mine()), again=True)
            self._epoch, self._look_at = epoch, now + self._look_every
        elif now >= self._look_at and limit:
            lease = self._config.lease
            found = await self._streams.ask(lambda queue: queue.abandoned(lease, limit))
            self._receive(found, again=True)
            if len(found) < limit:
                self._look_at = now + self._look_every

    async def _take(self, room: int, wait: timedelta) -> None:
        """Read by read, so that one claim has as much in hands as there is room for; the first may wait."""
        room -= len(self._due(within=_AGAIN))
        while room > 0:
            limit = min(room, self._config.batch)
            found = await self._read(limit, wait)
            self._eager = found >= limit
            room, wait = room - found if self._eager else 0, timedelta()

    async def _read(self, limit: int, wait: timedelta) -> int:
        found = await self._streams.ask(lambda queue: queue.take(limit, wait), wait)
        for lane, count in Counter(one.lane for one in found).items():
            self._telemetry.dequeued(lane, count)
        self._receive(found)
        return len(found)

    def _receive(self, deliveries: Sequence[Delivery], again: bool = False) -> None:
        now = self.clock.monotonic()
        for delivery in deliveries:
            known = self._kept.get(delivery.execution_id)
            if known is None and not (again and delivery.execution_id in self._leases):
                self._kept[delivery.execution_id] = _Kept(delivery, now, again)
            elif known is not None and known.delivery.receipt != delivery.receipt:
                self._acker.done(delivery)  # one message is enough

    async def _decide(self, due: Sequence[_Kept], room: int, others: bool) -> None:
        """Claim for the room there is. The rest waits for the other claimer to leave some, or goes back."""
        if due[room:]:
            self._eager = True
            if not others:
                await self._hand_back(due[room:])
        if due[:room]:
            await self._claim(due[:room])

    async def _claim(self, mine: Sequence[_Kept]) -> None:
        """One row that cannot be claimed harms itself alone: its message goes, another one comes later."""
        try:
            await self._claim_together(mine)
        except Exception as exc:
            if is_outage(exc):
                raise
            if len(mine) > 1:
                for one in mine:
                    await self._claim([one])
                return
            given_up = self._kept.pop(mine[0].delivery.execution_id).delivery
            log.exception("a message is given up", action="taker", execution_id=given_up.execution_id)
            self._acker.done(given_up)

    async def _claim_together(self, mine: Sequence[_Kept]) -> None:
        claimed_at = self._claimed_at = self.clock.monotonic()  # before the lease is asked for
        ids = [one.delivery.execution_id for one in mine]
        order = self._order(len(ids))
        claim = partial(executions.claim_these, order=order, ids=ids)
        ahead = partial(executions.TheseAhead, order=order, ids=ids)
        taken = await self._meetings.claim(order, claim, ahead)
        self._meetings.looked_at(taken.claims)
        self._begin(taken, claimed_at)

    def _begin(self, taken: Taken, claimed_at: float) -> None:
        now, clock = self.clock.now(), self.clock.monotonic()
        for execution_id, due_at in taken.later.items():
            if due_at <= now:
                self._meetings.noted()
            if one := self._kept.get(execution_id):
                one.try_at = clock + max(_AGAIN, (due_at - now).total_seconds())
        started = [one for claim in taken.claims if (one := self._kept.pop(claim.execution.id, None))]
        self._acker.done(*(one.delivery for i in taken.done if (one := self._kept.pop(i, None))))
        for lane, count in Counter(one.delivery.lane for one in started if one.again).items():
            self._telemetry.redelivered(lane, count)
        self._counters.claimed += len(taken.claims)
        self._slots.begin(
            taken.claims, claimed_at, {one.delivery.execution_id: one.delivery for one in started}
        )

    async def _hand_back(self, given: Sequence[_Kept]) -> None:
        if given:
            back = [self._kept.pop(one.delivery.execution_id).delivery for one in given]
            await self._streams.ask(lambda queue: queue.hand_back(back))

    async def _rescue(self) -> None:
        """Overdue while the road is empty: whoever feeds it is away. The rows are the truth."""
        now = self.clock.monotonic()
        if now < self._rescue_at:
            return
        self._rescue_at = now + _RESCUE_EVERY
        late = self._config.rescue_after
        first = await self._db.read(partial(executions.next_available_at, roads=(Road.STREAMS,)))
        if first is None or first > self.clock.now() - late:
            return
        with self._slots.reserve() as room:
            if room:
                order = replace(self._order(room), roads=(Road.STREAMS,), overdue=late, lead=timedelta())
                claims = await self._doubts.claim(order, partial(executions.claim, order=order))
                self._counters.rescued += len(claims)
                self._counters.claimed += len(claims)
                self._slots.begin(claims, now)

    def _order(self, limit: int) -> ClaimOrder:
        config = self._config
        return ClaimOrder(
            instance_id=config.instance_id,
            limit=limit,
            now=self.clock.now(),
            lease=config.lease,
            lead=config.lead,
        )
