"""The only place that asks the time."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Protocol

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SLEWED = 1.0  # seconds by which a clock may be ahead and still be slowed down rather than set back
_SLOWNESS = 2.0  # a clock that is ahead runs at half speed until the others have caught up


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


def wall_clock() -> datetime:
    """What this machine believes, and what somebody may set."""
    return datetime.now(UTC)


class SystemClock:
    monotonic = staticmethod(time.monotonic)

    def now(self) -> datetime:
        return wall_clock()

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


@dataclass(frozen=True, slots=True)
class Course:
    """What is added to the monotonic clock: `ahead` too much at first, which wears off. Threads read it."""

    offset: float
    ahead: float = 0.0
    since: float = 0.0

    def at(self, monotonic: float) -> float:
        if not self.ahead:
            return monotonic + self.offset
        worn_off = (monotonic - self.since) / _SLOWNESS
        return monotonic + self.offset + max(self.ahead - worn_off, 0.0)


class SyncedClock(SystemClock):
    """The database's time, carried on by the monotonic clock: no step of the wall clock reaches it.

    It never goes back, except when it turns out to be ahead by more than a second.
    """

    def __init__(self) -> None:
        self._course: Course | None = None
        self._sleepers: set[asyncio.Event] = set()

    @property
    def synced(self) -> bool:
        return self._course is not None

    def now(self) -> datetime:
        course = self._course
        if course is None:  # not told yet
            return super().now()
        monotonic = self.monotonic()
        at = course.at(monotonic) if course.ahead else monotonic + course.offset
        return datetime.fromtimestamp(at, UTC)

    def adjust(self, now: datetime, at: float, doubt: float = 0.0) -> timedelta:
        """It was `now` when the monotonic clock read `at`, or up to `doubt` seconds before: a clock that is
        ahead by no more stays as it is. Returns how far this clock was behind."""
        offset = (now - _EPOCH).total_seconds() - at
        known, here = self._course, self.monotonic()
        if known is None:
            self._course = Course(offset)
            return timedelta()
        behind = here + offset - known.at(here)
        if -doubt <= behind <= 0:
            return timedelta()
        ahead = -behind if -_SLEWED <= behind < 0 else 0.0
        self._course = Course(offset, ahead, here)
        if abs(behind) > _SLEWED:
            for sleeper in self._sleepers:
                sleeper.set()  # what they wait for may have come
        return timedelta(seconds=behind)

    async def sleep_until(self, when: datetime | None, wake: asyncio.Event) -> None:
        self._sleepers.add(wake)
        try:
            await super().sleep_until(when, wake)
        finally:
            self._sleepers.discard(wake)


def shared_clock(database_url: str) -> SystemClock:
    """All instances on one database go by its time; those on one SQLite file share a machine."""
    return SystemClock() if database_url.startswith("sqlite") else SyncedClock()
