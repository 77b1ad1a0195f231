"""Claims what is due in the database for the free slots of this instance; the runs are tasks of its group."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from noonday.clock import Clock
from noonday.domain.execution import Road
from noonday.engine.counters import Counters
from noonday.engine.crowds import Crowds, longest_lead
from noonday.engine.loop import AT_ONCE, Actor, Wish
from noonday.engine.meetings import Meetings
from noonday.engine.pace import Lead
from noonday.engine.slots import LONGEST_WAIT, Slots
from noonday.engine.streams import Streams
from noonday.ports import Claim
from noonday.store import executions
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from noonday.store.notices import PLEDGED, WORK

# Due, but not ours to take: look again soon, and not so soon while that lasts.
_LOCKED_ELSEWHERE: Final = timedelta(milliseconds=5)
_STILL_LOCKED: Final = timedelta(milliseconds=50)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    instance_id: str
    lease: timedelta = timedelta(seconds=30)
    ageing: timedelta = timedelta(seconds=60)  # waiting this long is worth one lane
    lead: timedelta = timedelta()  # the longest time before their moment that executions are claimed


class Worker(Actor):
    """Sleeps until the next execution is available; woken by new work and by slots that become free.

    While the streams cannot be used it claims the work of both roads.
    """

    name = "worker"

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        counters: Counters,
        slots: Slots,
        streams: Streams,
        config: WorkerConfig,
    ) -> None:
        self._notices = db.subscribe(WORK, PLEDGED)
        self._notices.heeds = lambda topics: WORK in topics or Road.STREAMS in streams.roads
        super().__init__(clock=clock, wake=self._notices)
        streams.watch(self.wake)
        self._db = db
        self._counters = counters
        self._slots = slots
        self._streams = streams
        self._doubts = slots.hands.doubts
        self._config = config
        self._lead = Lead(config.lead)
        self._claimed_at = float("-inf")
        self._told = 0  # of the notices, before the newest claim
        self._meetings = Meetings(clock=clock, doubts=self._doubts, settler=slots.hands.settler)
        self._crowds = Crowds(db=db, slots=slots.size, batch=slots.most, longest=longest_lead(config.lead))
        self._pause = _LOCKED_ELSEWHERE

    async def run(self) -> None:
        async with asyncio.TaskGroup() as attempts:
            self._slots.spawn = attempts.create_task
            try:
                await super().run()
            finally:
                self._slots.forsake()

    async def _sleep(self, wish: Wish) -> None:
        if wish == AT_ONCE:  # the others had their turn while it was in the store: it goes there again first
            self.wake.clear()
        else:
            await super()._sleep(wish)

    async def run_once(self) -> Wish:
        self._slots.hand_back_what_waits()
        await self._doubts.resolve()
        if self._told == self._notices.told and (rest := self._slots.rest(self._claimed_at, self.wake)):
            return rest
        crowd = self._crowds.share if self._slots.welcomes(self._crowds.share) else 0
        with self._slots.reserve(crowd) as room:
            if not room:
                self._slots.ask(self.wake)
                return timedelta(seconds=LONGEST_WAIT) if self._slots.waiting else None
            asked_at = self.clock.now()
            lead = self._crowds.lead(asked_at, self._lead.span) if crowd else self._lead.span
            claims, next_at = await self._claim(room, asked_at, lead)
        if len(claims) == room:
            if self._db.one_writer:  # they wait for each other anyway, and each would wait for the disk
                self._meetings.noted()
            return AT_ONCE
        if next_at is None:
            return None
        if not claims and next_at <= asked_at:
            self._meetings.noted()
            pause, self._pause = self._pause, min(self._pause * 2, _STILL_LOCKED)
            return pause
        self._pause = _LOCKED_ELSEWHERE
        if next_at > asked_at + self._lead.span:
            count = partial(executions.due_until, roads=self._streams.roads)
            early = await self._crowds.before(next_at, asked_at, count, self._lead.claim)
            return early or next_at - self._lead.wake
        # Within reach and not claimed: it is held, or decided at its moment. Those behind it need not wait.
        return min(next_at, asked_at + self._lead.wake)

    async def _claim(self, limit: int, now: datetime, lead: timedelta) -> tuple[list[Claim], datetime | None]:
        claimed_at = self._claimed_at = self.clock.monotonic()  # before the lease is asked for
        self._told = self._notices.told
        order = ClaimOrder(
            instance_id=self._config.instance_id,
            limit=limit,
            now=now,
            lease=self._config.lease,
            ageing=self._config.ageing,
            roads=self._streams.roads,
            lead=lead,
        )
        look = partial(executions.claim_and_look_ahead, order=order)
        ahead = partial(executions.FrontAhead, order=order)
        claims, next_at = await self._meetings.claim(order, look, ahead)
        self._meetings.looked_at(claims)
        self._crowds.seen(next_at)
        came_at = self.clock.monotonic()
        self._lead.took(came_at - claimed_at, came_at)
        self._counters.claimed += len(claims)
        self._slots.begin(claims, claimed_at)
        return claims, next_at
