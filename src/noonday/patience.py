"""Time limits on what others do, which leave out the moments in which this process itself stood still.

A process that gets no CPU for two seconds finds its timers run out and its answers unread, and would blame a
server that answered at once. So a limit is waited for in short steps, and a step counts as one step however
late it ends.
"""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

_STEP: Final = 0.25  # seconds; a pause costs at most so much of the patience


class Patience:
    """`async with Patience(2):` raises TimeoutError after two seconds in which the event loop was running."""

    __slots__ = ("_left", "_limit", "_loop", "_timer")

    def __init__(self, seconds: float) -> None:
        self._left = seconds

    async def __aenter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._limit = asyncio.timeout(None)
        await self._limit.__aenter__()
        self._wait()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        await self._limit.__aexit__(kind, error, trace)

    def _wait(self) -> None:
        step = min(_STEP, self._left)
        self._left -= step
        self._timer = self._loop.call_later(step, self._wait if self._left > 0 else self._give_up)

    def _give_up(self) -> None:
        self._limit.reschedule(self._loop.time())
