"""What was found out about all jobs together is good for a while: until one changes, or by what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from noonday.clock import Clock
from noonday.store import forecasting
from noonday.store.database import Database

__all__ = ["Remembered", "Worth"]

_FRESH: Final = timedelta(minutes=1)
_KEPT: Final = 64
_WORTH: Final = 20.0  # what took a second to find out is good for so many seconds

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class _Known(Generic[Found]):
    at: datetime
    state: Hashable
    found: Found


class Remembered(Generic[Found]):
    """One look at a time: who asks for the same meanwhile waits for it."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._known: dict[Hashable, _Known[Found]] = {}
        self._looking = asyncio.Lock()

    async def get(self, key: Hashable, look: Callable[[], Awaitable[Found]]) -> Found:
        state = await self._db.read(forecasting.state_of)
        async with self._looking:
            now, known = self._clock.now(), self._known.get(key)
            if known is None or known.state != state or not timedelta() <= now - known.at < _FRESH:
                known = _Known(now, state, await look())
                if len(self._known) >= _KEPT:
                    self._known.clear()
                self._known[key] = known
            return known.found


class Worth(Generic[Found]):
    """What was found out is kept for a while, the longer the more it cost; one look at a time.

    What took less than `cheap` seconds is found out anew each time.
    """

    def __init__(self, clock: Clock, cheap: float = 0.0) -> None:
        self._clock = clock
        self._cheap = cheap
        self._known: tuple[Hashable, Found] | None = None
        self._until = 0.0  # on the clock that is never set
        self._looking = asyncio.Lock()

    async def get(self, key: Hashable, look: Callable[[], Awaitable[Found]]) -> Found:
        async with self._looking:
            began = self._clock.monotonic()
            if self._known is None or self._known[0] != key or began >= self._until:
                self._known = (key, await look())
                ended = self._clock.monotonic()
                cost = ended - began
                self._until = ended + (_WORTH * cost if cost > self._cheap else 0.0)
            return self._known[1]
