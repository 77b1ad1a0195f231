"""A leader on a clock moved by hand: its planner, feeder and finder, on a road that can be told to fail."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

from noonday.domain.execution import Execution, ExecutionId, Road
from noonday.domain.job import Job, Lane
from noonday.engine.counters import Counters
from noonday.engine.feeder import Feeder
from noonday.engine.finder import Finder, FinderConfig
from noonday.engine.loop import Wish
from noonday.engine.streams import Streams
from noonday.ports import Delivery, Parcel, Pledge, Silence
from noonday.store import executions
from noonday.store.database import Database
from noonday.store.executions import ClaimOrder
from noonday.testing import FlakyQueue, FlakyRoad, ManualClock
from tests.factories import LEASE, NOON, an_execution, an_id

AHEAD = timedelta(seconds=2)


@dataclass
class Heard(Silence):
    """Telemetry that remembers what was put on the road."""

    put: list[tuple[Lane, int]] = field(default_factory=list)

    def enqueued(self, lane: Lane, count: int) -> None:
        self.put.append((lane, count))


@dataclass
class Leader:
    """The feeding side of an instance, driven by hand."""

    db: Database
    road: FlakyRoad
    clock: ManualClock
    name: str = "leader"
    term: int = 1

    def __post_init__(self) -> None:
        self.counters, self.heard = Counters(), Heard()
        self.queue: FlakyQueue = self.road.queue(self.name)
        self.streams = Streams(queue=self.queue, clock=self.clock)
        self.feeder = Feeder(
            clock=self.clock, streams=self.streams, counters=self.counters, telemetry=self.heard
        )
        self.finder = Finder(
            db=self.db,
            clock=self.clock,
            streams=self.streams,
            feeder=self.feeder,
            term=lambda: self.term,
            counters=self.counters,
            config=FinderConfig(lookahead=AHEAD, near=AHEAD, page=5, batch=4),
        )

    async def look(self) -> Wish:
        """As the loops do: the finder until it has no more to do at once, then the feeder."""
        while (wish := await self.finder.run_once()) == timedelta():
            pass
        await self.feeder.run_once()
        return wish

    async def back(self) -> None:
        self.clock.advance(seconds=3)
        await self.streams.run_once()
        assert self.streams.up

    async def lies_there(self) -> list[ExecutionId]:
        found = await self.queue.take(1000, timedelta())
        await self.queue.hand_back(found)
        return [one.execution_id for one in found]

    async def take(self) -> list[Delivery]:
        return await self.queue.take(1000, timedelta())

    async def work(self) -> None:
        """Somebody takes and runs all of it."""
        taken = await self.take()
        order = ClaimOrder(instance_id="w", limit=1000, now=self.clock.now(), lease=LEASE)
        ids = [one.execution_id for one in taken]
        await self.db.write(partial(executions.claim_these, order=order, ids=ids))
        await self.queue.ack(taken)


def a_row(
    db: Database, job: Job, when: datetime = NOON, *, pledged: bool = False, **more: object
) -> Execution:
    row = an_execution(job=job, scheduled_for=when, road=Road.STREAMS, **more)
    db.write_now(lambda conn: executions.plan(conn, [row], {row.id} if pledged else ()))
    return row


def a_pledge(when: datetime, lane: Lane = Lane.NORMAL) -> Pledge:
    return Pledge(when, Parcel(lane, ExecutionId(an_id())))
