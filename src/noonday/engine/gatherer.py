"""A crowd that takes the streams: each instance takes its share from the rows before messages are made."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial

from noonday.clock import Clock
from noonday.domain.execution import Road
from noonday.engine.counters import Counters
from noonday.engine.crowds import NEAR, Crowds, longest_lead
from noonday.engine.loop import AT_ONCE, Actor, Wish
from noonday.engine.pace import Lead
from noonday.engine.slots import Slots
from noonday.engine.streams import Streams
from noonday.engine.worker import WorkerConfig
from noonday.ports import Claim
from noonday.store import executions, feeding
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from noonday.store.notices import WORK


class Gatherer(Actor):
    """The planner leaves a crowd off the streams. They are served in their order: messages that came early
    would keep what is due before from its start, and at the moment itself they would come all at once.
    Whatever nobody has gathered shortly before the moment, the finder puts on the road.
    """

    name = "gatherer"
    gap = 0.05

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
        super().__init__(clock=clock, wake=db.subscribe(WORK))
        streams.watch(self.wake)
        self._db = db
        self._counters = counters
        self._slots = slots
        self._streams = streams
        self._doubts = slots.hands.doubts
        self._config = config
        self._took = Lead(config.lead)
        self._crowds = Crowds(
            db=db, slots=slots.size, batch=slots.most, longest=longest_lead(config.lead), spare=NEAR
        )

    async def run_once(self) -> Wish:
        if not self._streams.up or not self._config.lead:  # the worker does it, or nobody may
            return None
        if not self._crowds.share:
            next_at = await self._db.read(feeding.next_unfed_at)
            if next_at is None:
                return None
            now = self.clock.now()
            early = await self._crowds.before(next_at, now, feeding.unfed_until, self._took.claim)
            if early is None or early > now:
                return early or max(next_at - NEAR, now + NEAR)  # when that is fed
        await self._gather()
        return AT_ONCE

    async def _gather(self) -> None:
        """All of the share, or as much as there is room and time for."""
        while self._streams.up and self._slots.welcomes(self._crowds.share):
            await self._doubts.resolve()
            now = self.clock.now()
            lead = self._crowds.lead(now, timedelta())
            with self._slots.reserve(self._crowds.share) as room:
                if not room or lead <= timedelta() or not await self._claim(room, now, lead):
                    break
        self._crowds.seen(None)

    async def _claim(self, limit: int, now: datetime, lead: timedelta) -> list[Claim]:
        claimed_at = self.clock.monotonic()  # before the lease is asked for
        order = ClaimOrder(
            instance_id=self._config.instance_id,
            limit=limit,
            now=now,
            lease=self._config.lease,
            roads=(Road.STREAMS,),
            unfed=True,
            lead=lead,
        )
        claims = await self._doubts.claim(order, partial(executions.claim, order=order))
        came_at = self.clock.monotonic()
        self._took.took(came_at - claimed_at, came_at)
        self._counters.claimed += len(claims)
        self._slots.begin(claims, claimed_at)
        return claims
