"""Listeners of events: one reader for all of this instance, which reads only while somebody listens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Final

from noonday.api.event_shapes import encoded
from noonday.clock import Clock
from noonday.domain.errors import Unavailable
from noonday.domain.tail import Tail
from noonday.engine.loop import Actor, Wish
from noonday.store import events
from noonday.store.database import Database
from noonday.store.events import Event, Look
from noonday.store.notices import EVENTS

__all__ = ["Hub", "Listener", "Told"]

MOST: Final = 200  # who may listen here at once
_WAITING: Final = 1_000  # events that may wait for a listener; who is slower reads them from the table
_PAGE: Final = 500
_GAP: Final = timedelta(milliseconds=100)  # between looks for a number that is missing
_SAFETY: Final = timedelta(seconds=5)  # and for what no notice told of


@dataclass(frozen=True, slots=True)
class Told:
    """An event and its form on the wire, which is made once for all listeners."""

    event: Event
    chunk: bytes
    late: bool = False  # committed long after its followers

    @classmethod
    def of(cls, event: Event) -> Told:
        return cls(event, encoded(event))


class Listener:
    """Reads the table until it has come up with the others, then hears what the reader brings."""

    def __init__(self, hub: Hub) -> None:
        self.position = 0  # all up to this number was given out, or passed over
        self.closed = False
        self._hub = hub
        self._queue: deque[Told] = deque()
        self._behind = False
        self._missed = False
        self._stir = asyncio.Event()

    def begin(self, position: int, *, behind: bool = False, missed: bool = False) -> None:
        self.position, self._behind, self._missed = position, behind, missed

    def push(self, news: Sequence[Told]) -> None:
        if self._behind:
            return
        if len(self._queue) + len(news) > _WAITING:
            self.lag()
        else:
            self._queue.extend(news)
        self._stir.set()

    def lag(self) -> None:
        """Too slow for the queue, or the reader itself was: go on from the table."""
        self._behind = True
        self._queue.clear()
        self._stir.set()

    def close(self) -> None:
        self.closed = True
        self._stir.set()

    async def next(self) -> list[Told] | None:
        """What comes next, waiting for it; None if something was missed that is not kept any more."""
        while not self.closed:
            if self._missed:
                self._missed = False
                return None
            if self._behind:
                found = await self._catch_up()
            else:
                found = [told for told in self._queue if told.late or told.event.seq > self.position]
                self._queue.clear()
                self.position = max([self.position, *(told.event.seq for told in found)])
            if found:
                return found
            if not self._behind and not self._missed:
                self._stir.clear()
                await self._stir.wait()
        return []

    async def _catch_up(self) -> list[Told]:
        upto = self._hub.head
        if self.position >= upto:
            self._behind = False
            return []
        look = await self._hub.look(self.position, upto)
        if self.position + 1 < look.oldest:
            self.begin(self._hub.head, missed=True)
            return []
        self.position = look.events[-1].event.seq if len(look.events) == _PAGE else upto
        return list(look.events)


class Hub:
    """`keep` is how many events the table keeps; with 0 there is nothing to listen to."""

    def __init__(self, db: Database, clock: Clock, *, keep: int, most: int = MOST) -> None:
        self._db = db
        self._clock = clock
        self._keep = keep
        self._most = most
        self._listeners: set[Listener] = set()
        self._begins = asyncio.Lock()
        self._reader: _Reader | None = None
        self._reading: asyncio.Task[None] | None = None
        self._closed = False

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def head(self) -> int:
        """The newest number that was brought to everybody."""
        assert self._reader is not None
        return self._reader.tail.head

    async def position(self) -> int | None:
        """From behind which one listens on who reads everything else now; None where no events are kept."""
        if not self._keep:
            return None
        return self.head if self._reader is not None else (await self._db.read(events.bounds))[1]

    @asynccontextmanager
    async def listening(self, after: int | None = None) -> AsyncIterator[Listener]:
        """From now on, or on from behind the number `after`."""
        self._refuse()
        listener = Listener(self)
        self._listeners.add(listener)
        try:
            await self._begin(listener, after)
            yield listener
        finally:
            self._leave(listener)

    def close(self) -> None:
        """The server is about to end: let everybody go, and nobody in."""
        self._closed = True
        for listener in self._listeners:
            listener.close()

    async def look(self, after: int, upto: int) -> Look[Told]:
        return await self._db.read(
            partial(events.look, form=Told.of, after=after, limit=_PAGE, upto=upto),
        )

    def _refuse(self) -> None:
        if not self._keep:
            raise Unavailable("events are switched off here: EVENTS_KEEP is 0")
        if self._closed:
            raise Unavailable("this instance stops; another one, or its next start, goes on")
        if len(self._listeners) >= self._most:
            raise Unavailable(f"{self._most} listeners are here already, and no more fit in")

    async def _begin(self, listener: Listener, after: int | None) -> None:
        async with self._begins:  # whoever leaves meanwhile ends the reader of the others only when last
            oldest, newest = await self._db.read(events.bounds)
            if self._reader is None:
                self._reader = _Reader(self._db, self._clock, newest, self._bring, self._lag)
                self._reading = asyncio.create_task(self._reader.run(), name="events reader")
        if after is None:
            listener.begin(self.head)
        elif oldest - 1 <= after <= newest:
            listener.begin(after, behind=True)
        else:  # long gone, or of another database
            listener.begin(self.head, missed=True)

    def _leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._reading is not None:
            self._reading.cancel()
            self._reader = self._reading = None

    def _bring(self, news: Sequence[Told]) -> None:
        for listener in self._listeners:
            listener.push(news)

    def _lag(self) -> None:
        for listener in self._listeners:
            listener.lag()


class _Reader(Actor):
    name = "events reader"
    gap = 0.05

    def __init__(
        self,
        db: Database,
        clock: Clock,
        head: int,
        bring: Callable[[Sequence[Told]], None],
        lag: Callable[[], None],
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(EVENTS))
        self.tail = Tail[Told](head, lambda told: told.event.seq)
        self._db = db
        self._bring = bring
        self._lag = lag

    async def run_once(self) -> Wish:
        tail = self.tail
        look = await self._db.read(
            partial(events.look, form=Told.of, after=tail.head, limit=_PAGE, also=tail.missing)
        )
        if tail.head + 1 < look.oldest:  # so much happened that some of it is gone already
            tail.skip_to(look.oldest - 1)
            self._lag()
        ready, late = tail.take(look.events, self.clock.monotonic())
        self._bring([*(Told(told.event, told.chunk, late=True) for told in late), *ready])
        if ready and len(look.events) >= _PAGE:
            return timedelta()
        return _GAP if tail.waiting else _SAFETY
