"""Claims whose moment has not come yet: made ahead, so that the moment itself costs a dispatch."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from heapq import heappop, heappush
from math import ceil

from noonday.clock import Clock
from noonday.engine.crowds import NEAR
from noonday.engine.held import Held


class Coming:
    """Gives back each claim at its moment or right behind it, never before."""

    def __init__(
        self,
        clock: Clock,
        come: Callable[[Sequence[Held]], None],
        hasten: Callable[[bool], None] | None = None,  # told when some begin to wait, and when none do
    ) -> None:
        self._clock = clock
        self._come = come
        self._hasten = hasten
        self._near = False
        self._moments: list[datetime] = []  # a heap
        self._at: dict[datetime, list[Held]] = {}  # of each of them
        self._far: set[datetime] = set()  # of these, what was claimed for a crowd
        self._count = 0
        self._alarm: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        return self._count

    @property
    def near(self) -> int:
        """Those that were claimed shortly before their moment, and will soon want a slot."""
        return self._count - sum(len(self._at[at]) for at in self._far)

    def add(self, claimed: Iterable[Held]) -> list[Held]:
        """Those that are due already."""
        now = self._clock.now()
        due: list[Held] = []
        for held in claimed:
            at = held.claim.execution.available_at
            if at is None or at <= now:
                due.append(held)
                continue
            self._count += 1
            if at in self._at:
                self._at[at].append(held)
            else:
                self._at[at] = [held]
                heappush(self._moments, at)
                if at - now > NEAR:
                    self._far.add(at)
        self._set_alarm(now)
        return due

    def clear(self) -> list[Held]:
        """All of them, whatever their moment."""
        left = [held for at in sorted(self._moments) for held in self._at[at]]
        self._moments.clear()
        self._at.clear()
        self._far.clear()
        self._count = 0
        self._set_alarm(self._clock.now())
        return left

    def _ring(self) -> None:
        self._alarm = None
        now = self._clock.now()
        due: list[Held] = []
        while self._moments and self._moments[0] <= now:
            due += self._at.pop(at := heappop(self._moments))
            self._far.discard(at)
        self._count -= len(due)
        self._set_alarm(now)
        if due:
            self._come(due)

    def _set_alarm(self, now: datetime) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        near = bool(self._moments)
        if near is not self._near and self._hasten is not None:
            self._near = near
            self._hasten(near)
        if near:
            left = (self._moments[0] - now).total_seconds()
            # Event loops count in milliseconds: a part of one would be no wait at all.
            self._alarm = asyncio.get_running_loop().call_later(ceil(left * 1000) / 1000, self._ring)
