"""Leader only: finds rows of version 2 that nobody has put on the road, and those that the road lost."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.errors import RoadDown
from noonday.domain.job import Lane
from noonday.engine.counters import Counters
from noonday.engine.crowds import NEAR
from noonday.engine.feeder import Feeder
from noonday.engine.loop import Actor, Wish
from noonday.engine.streams import Streams
from noonday.ports import Pledge
from noonday.store import feeding, instances
from noonday.store.database import Database
from noonday.store.notices import WORK

log = structlog.get_logger(__name__)

_HELD_ELSEWHERE: Final = timedelta(milliseconds=50)  # not fed, but locked by somebody: look again soon
_NO_ROOM: Final = timedelta(seconds=1)
_LONG_CENSUS: Final = timedelta(seconds=30)  # for a look at all that lies on a long road


@dataclass(frozen=True, slots=True, kw_only=True)
class FinderConfig:
    lookahead: timedelta = timedelta(seconds=2)
    near: timedelta = NEAR  # until then a crowd is left to those who gather it
    reach: timedelta = timedelta(seconds=8)  # so far ahead are the plans of a leader that is gone
    check_every: timedelta = timedelta(seconds=5)
    late: timedelta = timedelta(seconds=5)  # on the road for so long and not claimed: is it still there?
    tidy_every: timedelta = timedelta(seconds=30)
    silent: timedelta = timedelta(minutes=2)  # an instance without a heartbeat for so long is gone
    batch: int = 1000
    page: int = 10_000


class Finder(Actor):
    """Looks when work is told of and when unfed rows come near; every few seconds, and at once when the
    leader or the road is a new one, it compares what should be on the road with what is there."""

    name = "finder"
    gap = 0.005

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        streams: Streams,
        feeder: Feeder,
        term: Callable[[], int],
        counters: Counters,
        config: FinderConfig,
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(WORK))
        streams.watch(self.wake)
        self._db = db
        self._streams = streams
        self._feeder = feeder
        self._term = term
        self._counters = counters
        self._config = config
        self._seen: tuple[int, ...] = ()  # the term and the road of the last whole round
        self._measure_at = self._check_at = self._tidy_at = float("-inf")
        self._whole = False  # a round that is not spread over time
        self._before = clock.now()
        self._left: dict[Lane, Pledge | None] = {}  # lanes of this round, and where they go on

    async def run_once(self) -> Wish:
        if not self._streams.up:
            return None
        try:
            await self._measure()
            next_at = await self._feed()
            if await self._compare():
                return timedelta()
            await self._tidy()
        except RoadDown:
            return None
        left = timedelta(seconds=max(self._check_at - self.clock.monotonic(), 0.0))
        return left if next_at is None else min(left, next_at)

    async def _measure(self) -> None:
        now = self.clock.monotonic()
        if now >= self._measure_at or not self._feeder.lanes:
            self._feeder.measured(await self._streams.ask(lambda queue: queue.depths()))
            self._measure_at = now + self._config.check_every.total_seconds()

    async def _feed(self) -> timedelta | None:
        """Everything unfed that is near; says in how long there will be more."""
        while True:
            horizon, lanes = self.clock.now() + self._config.near, self._feeder.lanes
            found, next_at = await self._db.write(partial(self._mark, horizon, lanes))
            self._feeder.pledge(found)
            if len(found) < self._config.batch:
                break
        if next_at is None or next_at > horizon:
            return None if next_at is None else next_at - horizon
        return _HELD_ELSEWHERE if len(lanes) == len(Lane) else _NO_ROOM

    def _mark(
        self, horizon: datetime, lanes: Collection[Lane], conn: Connection
    ) -> tuple[list[Pledge], datetime | None]:
        found = feeding.unfed(conn, horizon, self._config.batch, lanes) if lanes else []
        if found:
            feeding.mark_fed(conn, [one.parcel.execution_id for one in found], self.clock.now())
        return found, feeding.next_unfed_at(conn)

    async def _compare(self) -> bool:
        """One page of each lane that is left in this round; says whether there is more to do at once."""
        now = self.clock.monotonic()
        state = (self._term(), self._streams.epoch, self._streams.forgotten)
        if state != self._seen:
            self._begin(self.clock.now() + self._config.reach + self._config.lookahead)
            self._seen, self._whole = state, True
        elif now < self._check_at:
            return False
        elif not self._left:
            self._begin(self.clock.now() - self._config.late)
            self._whole = False
        lost = 0
        for lane, after in list(self._left.items()):
            lost += await self._compare_lane(lane, after)
        if lost:
            self._counters.restored += lost
            log.warning("executions that the road lost are put on it anew", action="restore", count=lost)
        on = bool(self._left) and (self._whole or lost > 0)
        self._check_at = now if on else now + self._config.check_every.total_seconds()
        return on or lost > 0

    def _begin(self, before: datetime) -> None:
        self._before = before
        self._left = dict.fromkeys(Lane)

    async def _compare_lane(self, lane: Lane, after: Pledge | None) -> int:
        size = self._config.page
        look = partial(feeding.suspects, lane=lane, before=self._before, limit=size, after=after)
        page = await self._db.read(look)
        asked = [one.parcel for one in page if one.parcel.execution_id not in self._feeder]
        lost = await self._streams.ask(lambda queue: queue.missing(asked), _LONG_CENSUS) if asked else []
        if len(page) == size:
            self._left[lane] = page[-1]
        else:
            del self._left[lane]
        if not lost:
            return 0
        return await self._db.write(partial(feeding.unfeed, ids=[one.execution_id for one in lost]))

    async def _tidy(self) -> None:
        now = self.clock.monotonic()
        if now < self._tidy_at:
            return
        self._tidy_at = now + self._config.tidy_every.total_seconds()
        since = self.clock.now() - self._config.silent
        alive = await self._db.read(partial(instances.everyone, alive_since=since))
        await self._streams.ask(lambda queue: queue.tidy([one.id for one in alive]))
