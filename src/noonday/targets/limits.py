"""Time limits of calls: one timer for all that have the same patience, instead of one for each call.

Calls of the same patience run out in the order in which they began, so a timer for the oldest serves all of
them. Nearly every call ends long before, and costs no timer at all.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Final

_MANY: Final = 64  # lines that are kept though nobody waits in them
_EARLY: Final = 0.001  # seconds by which a loop may call a timer too soon


class Limits:
    """`with limits.within(5):` raises TimeoutError after five seconds, like asyncio.timeout."""

    def __init__(self) -> None:
        self._lines: dict[float, _Line] = {}

    def within(self, seconds: float) -> Limit:
        """The time runs from now on, for the task that asks."""
        line = self._lines.get(seconds) or self._open(seconds)
        task = asyncio.current_task(line.loop)
        assert task is not None
        limit = Limit(task, line.waiting)
        when = line.waiting[limit] = line.loop.time() + seconds
        if line.timer is None:
            line.timer = line.loop.call_at(when, line.look)
        return limit

    def _open(self, seconds: float) -> _Line:
        if len(self._lines) >= _MANY:
            for idle in [known for known, line in self._lines.items() if not line.waiting]:
                self._lines.pop(idle).close()
        line = self._lines[seconds] = _Line(asyncio.get_running_loop())
        return line

    def __len__(self) -> int:
        return len(self._lines)

    def close(self) -> None:
        """Nobody is stopped any more."""
        for line in self._lines.values():
            line.close()
        self._lines.clear()


class _Line:
    """The calls of one patience, the oldest first."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.waiting: dict[Limit, float] = {}  # when each runs out
        self.timer: asyncio.TimerHandle | None = None

    def look(self) -> None:
        """Ends those whose time is over, and comes again for the oldest of the others."""
        self.timer = None
        now = self.loop.time() + _EARLY
        for limit, when in list(self.waiting.items()):
            if when > now:
                self.timer = self.loop.call_at(when, self.look)
                return
            del self.waiting[limit]
            limit.expire()

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()


class Limit:
    """Of one call; left by the task that asked for it."""

    __slots__ = ("_cancelling", "_task", "_waiting", "expired")

    def __init__(self, task: asyncio.Task[Any], waiting: dict[Limit, float]) -> None:
        self._task = task
        self._waiting = waiting
        self._cancelling = task.cancelling()
        self.expired = False

    def __enter__(self) -> Limit:
        return self

    def expire(self) -> None:
        self.expired = True
        self._task.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.expired:
            del self._waiting[self]
        # a cancellation that somebody else asked for as well stays one
        elif self._task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error
