"""What was found out about all jobs together is good for a minute, unless one of them has changed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

from noonday.clock import Clock
from noonday.store import forecasting
from noonday.store.database import Database

__all__ = ["Remembered"]

_FRESH: Final = timedelta(minutes=1)
_KEPT: Final = 64

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
