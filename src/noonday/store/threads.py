"""The threads that transactions are made in, and what a busy event loop must know of them: they have one
interpreter between them.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

__all__ = ["Standing", "Threads"]

T = TypeVar("T")
_NO_TIME: Final = 3000  # nanoseconds of a processor: what waiting may take


class _Call:
    """Something to do, from the moment that it is asked for until whoever asked has heard of it."""

    __slots__ = ("begun", "done")

    def __init__(self) -> None:
        self.begun = self.done = False


class Threads:
    """Some threads, and whether they wait for the event loop or it could hear from them."""

    def __init__(
        self,
        count: int,
        name: str,
        stuck: Callable[[], bool],
        at_first: Callable[[], object] | None = None,  # what each of them does before all else
    ) -> None:
        self.brought = False  # something is done, and whoever asked for it has not had a turn since
        self._count = count
        self._stuck = stuck  # does one wait for the interpreter in the midst of its work?
        self._calls: set[_Call] = set()
        self._pool = ThreadPoolExecutor(count, name, initializer=at_first)

    def waiting(self) -> bool:
        """Does one wait for the interpreter?"""
        calls = tuple(self._calls)
        at_work = sum(call.begun and not call.done for call in calls)
        to_begin = any(not call.begun for call in calls) and at_work < self._count
        return to_begin or self._stuck()

    async def run(self, work: Callable[[], T]) -> T:
        """Whoever awaits it may be cancelled; what has begun is done all the same."""
        call = _Call()
        self._calls.add(call)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, self._do, call, work)
        finally:
            self._calls.discard(call)
            self.brought = any(one.done for one in tuple(self._calls))

    def run_now(self, work: Callable[[], T]) -> T:
        """For code without an event loop; blocks."""
        return self._pool.submit(work).result()

    def end(self) -> None:
        """When all that has begun is done."""
        self._pool.shutdown(wait=True)

    def _do(self, call: _Call, work: Callable[[], T]) -> T:
        call.begun = True
        try:
            return work()
        finally:
            call.done = self.brought = True


class Standing:
    """Whether a thread stands still in the midst of something, by the clock of the processor's time that it
    takes. A file has no socket that would tell; what is stuck there waits for the interpreter, or for the
    disk while it reads, which is seldom.
    """

    def __init__(self) -> None:
        self._look: Callable[[], int] | None = None
        self._busy = False
        self._seen = 0

    def begin(self) -> None:
        """Told by the thread itself; on systems without such clocks it never stands still."""
        if hasattr(time, "pthread_getcpuclockid"):
            self._look = partial(time.clock_gettime_ns, time.pthread_getcpuclockid(threading.get_ident()))

    def busy(self, busy: bool) -> None:
        """Whether it should be getting on; not while it waits for the disk."""
        self._busy = busy

    def still(self) -> bool:
        """Since the look before."""
        if not self._busy or self._look is None:
            return False
        before, self._seen = self._seen, self._look()
        return self._seen - before < _NO_TIME
