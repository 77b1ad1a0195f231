"""Puts executions of version 2 on the road shortly before their moment: they start at it, and not before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Final

from noonday.clock import Clock
from noonday.domain.errors import RoadDown
from noonday.domain.execution import ExecutionId
from noonday.domain.job import Lane
from noonday.engine.counters import Counters
from noonday.engine.loop import Actor, Wish
from noonday.engine.streams import Streams
from noonday.ports import Parcel, Pledge, Telemetry

MOST: Final = 100_000  # open messages per lane; more stay in the rows until there is room
_BATCH: Final = 1000


class Feeder(Actor):
    """Sleeps until the next pledge is due.

    A pledge that cannot be kept, because the road is down or this process dies, is in its row all the same:
    the finder compares the rows with the road. So whoever plans no more may still keep what it pledged.
    """

    name = "feeder"

    def __init__(
        self,
        *,
        clock: Clock,
        streams: Streams,
        counters: Counters,
        telemetry: Telemetry,
        lead: timedelta = timedelta(),
    ) -> None:
        super().__init__(clock=clock)
        self._lead = lead  # for the way
        streams.watch(self.wake)
        self._streams = streams
        self._counters = counters
        self._telemetry = telemetry
        self._heap: list[tuple[datetime, int, Parcel]] = []
        self._serial = count()
        self._ids: set[ExecutionId] = set()
        self._room = dict.fromkeys(Lane, 0)  # nothing is known yet

    def __contains__(self, execution_id: ExecutionId) -> bool:
        """Is it pledged and still to be put?"""
        return execution_id in self._ids

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def lanes(self) -> frozenset[Lane]:
        """For which of them it takes pledges: none while the road is down, not those that are full."""
        return frozenset(lane for lane, room in self._room.items() if room > 0 and self._streams.up)

    def pledge(self, pledges: Iterable[Pledge]) -> None:
        """To be called after the commit that set their `enqueued_at`."""
        for one in pledges:
            heappush(self._heap, (one.due_at - self._lead, next(self._serial), one.parcel))
            self._ids.add(one.parcel.execution_id)
            self._room[one.parcel.lane] -= 1
            self.wake.set()

    def measured(self, depths: Mapping[Lane, int]) -> None:
        """So much lies on the road; what is still to be put comes on top."""
        coming = Counter(parcel.lane for _, _, parcel in self._heap)
        self._room = {lane: MOST - depths.get(lane, 0) - coming[lane] for lane in Lane}

    async def run_once(self) -> Wish:
        if not self._streams.up:
            self._heap.clear()
            self._ids.clear()
            self._room = dict.fromkeys(Lane, 0)
            return None
        now = self.clock.now()
        while self._heap and self._heap[0][0] <= now:
            await self._put(self._pop_until(now + self._lead / 2))  # what comes close behind comes along
        return self._heap[0][0] if self._heap else None

    def _pop_until(self, last: datetime) -> list[Parcel]:
        due: list[Parcel] = []
        while self._heap and self._heap[0][0] <= last and len(due) < _BATCH:
            due.append(heappop(self._heap)[2])
        return due

    async def _put(self, due: list[Parcel]) -> None:
        try:
            await self._streams.ask(lambda queue: queue.put(due))
        except RoadDown:
            return
        finally:
            self._ids.difference_update(parcel.execution_id for parcel in due)
        self._counters.enqueued += len(due)
        for lane, put in Counter(parcel.lane for parcel in due).items():
            self._telemetry.enqueued(lane, put)
