"""A road of our own making: a Queue in memory that behaves, until it is told to lose, double or delay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice

from noonday.clock import Clock
from noonday.domain.errors import RoadDown
from noonday.domain.execution import ExecutionId
from noonday.domain.job import Lane
from noonday.ports import Delivery, Parcel

_SHARE_OF_LOWER = 8  # each so many-th message comes from the lowest lane that has one


def _all_or_nothing() -> float:
    return 0.0


@dataclass(slots=True, kw_only=True)
class Faults:
    """Shares between 0 and 1, of parcels or of calls. Without a source of chance every share is a whole."""

    lose: float = 0.0  # parcels that are put and never arrive
    double: float = 0.0  # parcels that arrive twice
    late: timedelta = timedelta()  # at most so much later than they were put; each by chance
    lose_acks: float = 0.0  # acknowledgements that are not heard
    lose_answers: float = 0.0  # calls that are obeyed, and then fail all the same


@dataclass(slots=True, eq=False)
class _Message:
    receipt: str
    lane: Lane
    execution_id: ExecutionId
    arrives_at: float
    holder: str | None = None
    touched_at: float = 0.0

    @property
    def delivery(self) -> Delivery:
        return Delivery(self.lane, self.execution_id, self.receipt)


@dataclass(slots=True, eq=False)
class FlakyRoad:
    """What the instances of a test share. `queue` gives each of them its end of it.

    `chance` gives numbers in [0, 1), e.g. `random.Random(7).random`: the same source, the same misfortunes.
    With `waits`, `take` waits on the event loop's own time for something to arrive. Without, as under a
    clock that is moved by hand, it says at once that there is nothing.
    """

    clock: Clock
    chance: Callable[[], float] = _all_or_nothing
    waits: bool = False
    faults: Faults = field(default_factory=Faults)
    flushes: int = 0  # how often everything was forgotten
    _messages: dict[str, _Message] = field(default_factory=dict)
    _cut: set[str] = field(default_factory=set)
    _down: bool = False
    _serial: int = 0
    _ears: dict[str, asyncio.Event] = field(default_factory=dict)

    def queue(self, consumer: str) -> FlakyQueue:
        return FlakyQueue(self, consumer)

    def __len__(self) -> int:
        return len(self._messages)

    def down(self, *consumers: str) -> None:
        """Nobody, or these instances, can use it any more; what is on it stays there."""
        self._cut.update(consumers)
        self._down = self._down or not consumers
        self._wake()

    def up(self, *consumers: str) -> None:
        """For these instances, or for all; cut ones are joined again."""
        self._cut.difference_update(consumers or tuple(self._cut))
        self._down = self._down and bool(consumers)
        self._wake()

    def flush(self) -> None:
        """Everything is forgotten: what waits and what is in hands."""
        self._messages.clear()
        self.flushes += 1

    def behave(self) -> None:
        """From here on it is a good road."""
        self.faults = Faults()
        self.up()

    def check(self, consumer: str) -> None:
        if self._down or consumer in self._cut:
            raise RoadDown(f"the road is cut for {consumer}")

    def happens(self, share: float) -> bool:
        return share > 0 and self.chance() < share

    def answer(self) -> None:
        if self.happens(self.faults.lose_answers):
            raise RoadDown("it was done, but the answer got lost")

    def add(self, parcels: Iterable[Parcel]) -> None:
        for parcel in parcels:
            if self.happens(self.faults.lose):
                continue
            for _ in range(2 if self.happens(self.faults.double) else 1):
                late = self.faults.late.total_seconds()
                self._arrive(parcel, late * self.chance() if late else 0.0)
        self._wake()

    def _arrive(self, parcel: Parcel, after: float) -> None:
        self._serial += 1
        made = _Message(
            receipt=f"{self._serial}-0",
            lane=parcel.lane,
            execution_id=parcel.execution_id,
            arrives_at=self.clock.monotonic() + after,
        )
        self._messages[made.receipt] = made

    def waiting(self) -> list[_Message]:
        """In the order in which they are served."""
        now = self.clock.monotonic()
        free = [one for one in self._messages.values() if one.holder is None and one.arrives_at <= now]
        return sorted(free, key=lambda one: one.lane)

    def next_arrival(self) -> float | None:
        """Of what is late: in how many seconds the next one arrives."""
        now = self.clock.monotonic()
        late = (one.arrives_at - now for one in self._messages.values() if one.arrives_at > now)
        return min(late, default=None)

    def there(self) -> Iterator[_Message]:
        now = self.clock.monotonic()
        return (one for one in self._messages.values() if one.arrives_at <= now)

    def held(self) -> list[_Message]:
        return [one for one in self._messages.values() if one.holder is not None]

    def of(self, deliveries: Iterable[Delivery]) -> list[_Message]:
        """Unknown receipts are ignored."""
        found = [self._messages.get(one.receipt) for one in deliveries]
        return [one for one in found if one is not None]

    def give(self, message: _Message, holder: str) -> Delivery:
        message.holder, message.touched_at = holder, self.clock.monotonic()
        return message.delivery

    def idle(self, message: _Message) -> float:
        return self.clock.monotonic() - message.touched_at

    def remove(self, messages: Iterable[_Message]) -> None:
        for one in messages:
            self._messages.pop(one.receipt, None)

    def add_anew(self, deliveries: Iterable[Delivery]) -> None:
        """A new message takes the place of the old one: nothing is lost in between."""
        for one in deliveries:
            self._arrive(Parcel(one.lane, one.execution_id), 0.0)
        self.remove(self.of(deliveries))
        self._wake()

    def ear(self, consumer: str) -> asyncio.Event:
        """Set whenever something changes on the road; made anew for each wait, which has its own loop."""
        self._ears[consumer] = asyncio.Event()
        return self._ears[consumer]

    def _wake(self) -> None:
        for ear in self._ears.values():
            ear.set()


class FlakyQueue:
    """One instance's end of a FlakyRoad: a Queue as the engine knows it."""

    def __init__(self, road: FlakyRoad, consumer: str) -> None:
        self.road = road
        self.consumer = consumer
        self._taken = 0
        self._cursor = ""
        self._began_with = self._forgotten = road.flushes

    @property
    def forgotten(self) -> int:
        return self._forgotten - self._began_with

    async def check(self) -> list[str]:
        self._use()
        return []

    async def put(self, parcels: Sequence[Parcel]) -> None:
        self._use()
        self.road.add(parcels)
        self.road.answer()

    async def take(self, limit: int, wait: timedelta) -> list[Delivery]:
        self._use()
        found = self._next(limit)
        if not found and self.road.waits:
            await self._listen(wait)
            found = self._next(limit)
        taken = [self.road.give(one, self.consumer) for one in found]
        if taken:
            self.road.answer()
        return taken

    async def ack(self, deliveries: Collection[Delivery]) -> None:
        self._use()
        heard = [one for one in deliveries if not self.road.happens(self.road.faults.lose_acks)]
        self.road.remove(self.road.of(heard))
        self.road.answer()

    async def hand_back(self, deliveries: Collection[Delivery]) -> None:
        self._use()
        self.road.add_anew(deliveries)

    async def keep(self, deliveries: Collection[Delivery]) -> None:
        self._use()
        for one in self.road.of(deliveries):
            if one.holder is not None:
                self.road.give(one, self.consumer)

    async def abandoned(self, idle: timedelta, limit: int) -> list[Delivery]:
        self._use()
        seconds = idle.total_seconds()
        behind = [one for one in self.road.held() if _order(one.receipt) > _order(self._cursor)]
        found = list(islice((one for one in behind if self.road.idle(one) >= seconds), limit))
        self._cursor = found[-1].receipt if len(found) == limit else ""
        taken = [self.road.give(one, self.consumer) for one in found]
        self.road.answer()
        return taken

    async def mine(self) -> list[Delivery]:
        self._use()
        return [one.delivery for one in self.road.held() if one.holder == self.consumer]

    async def missing(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        self._use()
        there = {(one.lane, one.execution_id) for one in self.road.there()}
        return [one for one in parcels if (one.lane, one.execution_id) not in there]

    async def tidy(self, alive: Collection[str]) -> None:
        self._use()

    async def depths(self) -> Mapping[Lane, int]:
        self._use()
        found = dict.fromkeys(Lane, 0)
        for one in self.road.there():
            found[one.lane] += 1
        return found

    def _use(self) -> None:
        """Whoever uses a road that forgot everything finds out."""
        self.road.check(self.consumer)
        self._forgotten = self.road.flushes

    def _next(self, limit: int) -> list[_Message]:
        found: list[_Message] = []
        free = self.road.waiting()
        while free and len(found) < limit:
            self._taken += 1
            found.append(free.pop(_lowest(free) if self._taken % _SHARE_OF_LOWER == 0 else 0))
        return found

    async def _listen(self, wait: timedelta) -> None:
        """Until something may be there; a road that breaks meanwhile is noticed at once."""
        loop = asyncio.get_running_loop()
        until = loop.time() + wait.total_seconds()
        while not self.road.waiting() and loop.time() < until:
            arrival = self.road.next_arrival()
            ear = self.road.ear(self.consumer)
            first = until if arrival is None else min(until, loop.time() + arrival)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(first):
                    await ear.wait()
            self._use()


def _order(receipt: str) -> int:
    return int(receipt.partition("-")[0] or 0)


def _lowest(free: Sequence[_Message]) -> int:
    """The oldest message of the lowest lane, in a list that is sorted by lane."""
    lane = free[-1].lane
    return next(place for place, one in enumerate(free) if one.lane is lane)
