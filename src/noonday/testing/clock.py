"""A clock that stands still until it is moved by hand."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta

from noonday.targets.tasks import current

NEW_YEAR = datetime(2027, 1, 1, 12, tzinfo=UTC)


class ManualClock:
    """Stands still until it is moved."""

    def __init__(self, now: datetime = NEW_YEAR) -> None:
        self._now = now
        self._elapsed = 0.0
        self._sleepers: dict[asyncio.Future[None], float] = {}
        self.alarms: dict[asyncio.Event, datetime] = {}  # who sleeps until when, unless woken
        self.asleep: Counter[str] = Counter()  # executions whose task sleeps on this clock

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return self._elapsed

    def advance(self, **span: float) -> None:
        self.move_to(self._now + timedelta(**span))

    def move_to(self, moment: datetime) -> None:
        """Time passes until then; it never runs backwards."""
        self._elapsed += max((moment - self._now).total_seconds(), 0.0)
        self._now = max(moment, self._now)
        for sleeper, until in list(self._sleepers.items()):
            if until <= self._elapsed + 1e-9 and not sleeper.done():
                sleeper.set_result(None)
        for wake, when in list(self.alarms.items()):
            if when <= self._now:
                wake.set()

    def step(self, **span: float) -> None:
        """Somebody sets the wall clock, forward or back, and no time passes."""
        self._now += timedelta(**span)

    @property
    def next_wake(self) -> datetime | None:
        """When the next sleeper wakes."""
        left = min(self._sleepers.values(), default=None)
        return None if left is None else self._now + timedelta(seconds=max(left - self._elapsed, 0.0))

    async def sleep(self, seconds: float) -> None:
        """What a task under test awaits instead of asyncio.sleep."""
        sleeper: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers[sleeper] = self._elapsed + seconds
        run = _execution_here()
        self.asleep[run] += 1
        try:
            await sleeper
        finally:
            self.asleep[run] -= 1
            del self._sleepers[sleeper]

    async def sleep_until(self, when: datetime | None, wake: asyncio.Event) -> None:
        if when is not None:
            self.alarms[wake] = when
            if when <= self._now:
                wake.set()
        try:
            await wake.wait()
        finally:
            self.alarms.pop(wake, None)
            wake.clear()


def _execution_here() -> str:
    try:
        return current().execution_id
    except RuntimeError:
        return ""
