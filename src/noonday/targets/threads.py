"""Runs blocking functions in daemon threads: one that never ends cannot hold up the exit."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from noonday.domain.outcome import Usage


@dataclass(frozen=True, slots=True)
class Ended:
    value: Any
    error: BaseException | None
    usage: Usage


class Threads:
    """At most `slots` at a time; one that ignores its cancellation keeps its slot until it really ends."""

    def __init__(self, slots: int) -> None:
        self._free = asyncio.Semaphore(slots)

    async def start(self, name: str, work: Callable[[], Any]) -> asyncio.Future[Ended]:
        """The thread runs in the caller's context; cancelling the future does not stop it."""
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[Ended] = loop.create_future()
        context = contextvars.copy_context()

        def finish(end: Ended) -> None:
            self._free.release()
            if not ended.done():
                ended.set_result(end)

        def body() -> None:
            end = context.run(_timed, work)
            try:
                loop.call_soon_threadsafe(finish, end)
            except RuntimeError:
                return  # the loop has closed: nobody waits any more

        threading.Thread(target=body, name=f"noonday-{name}", daemon=True).start()
        return ended


def _timed(work: Callable[[], Any]) -> Ended:
    before = time.thread_time()
    value, error = None, None
    try:
        value = work()
    except BaseException as exc:
        error = exc
    return Ended(value, error, Usage(cpu_time_ms=round((time.thread_time() - before) * 1000)))
