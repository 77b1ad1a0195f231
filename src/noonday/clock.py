"""The only place that asks the time."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The wall clock, aware and in UTC: for due times and records."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back: for leases and time-outs."""
        ...

    async def sleep_until(self, when: datetime | None, wake: asyncio.Event) -> None:
        """Return at `when` (None = never) or as soon as `wake` is set; clears `wake`."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep_until(self, when: datetime | None, wake: asyncio.Event) -> None:
        # The wall clock may be stepped while we sleep, so no nap is longer than a minute.
        while not wake.is_set():
            left = 60.0 if when is None else (when - self.now()).total_seconds()
            if when is not None and left <= 0:
                break
            try:
                async with asyncio.timeout(min(left, 60.0)):
                    await wake.wait()
            except TimeoutError:
                continue
        wake.clear()


class SyncedClock(SystemClock):
    """The database's time, carried on by the monotonic clock: no step of the wall clock reaches it."""

    def adjust(self, now: datetime, at: float) -> None:
        """It was `now` when the monotonic clock read `at`."""


def in_seconds(now: datetime, seconds: float) -> datetime:
    return now + timedelta(seconds=seconds)
