"""Time of our own: one event loop per process of the simulation, and one clock that only jumps.

The loops are asyncio's own, without selector and threads: whatever is ready runs, one loop at a time and by
chance in which order, and when nothing is ready any more the time jumps to the next timer. A loop that is not
stepped is a process that was stopped; one that is never stepped again is a process that was killed.
"""

from __future__ import annotations

import asyncio
import heapq
import warnings
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from noonday.clock import SystemClock

START = datetime(2027, 1, 1, 12, tzinfo=UTC)
_TICK = 1e-9
_STEP = 1e-6  # seconds that a step of a process takes: a loop that never sleeps still gets somewhere
_MOST_STEPS = 20_000  # at one moment; more is a circle


class NothingToSelect:
    """There are no files in this world."""

    def select(self, timeout: float | None) -> Sequence[Any]:
        return ()


class ProcessLoop(asyncio.BaseEventLoop):
    """The event loop of one process; it runs only when it is stepped."""

    _ready: Sequence[Any]
    _scheduled: list[Any]

    def __init__(self, universe: Universe) -> None:
        super().__init__()
        self._universe = universe
        self._selector = NothingToSelect()
        self._clock_resolution = _TICK
        self.set_exception_handler(lambda loop, context: None)

    def time(self) -> float:
        return self._universe.time

    def _process_events(self, events: Sequence[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def due(self, by: float) -> bool:
        """Is something to be done, or will be by then?"""
        if self._ready:
            return True
        timer = self.next_timer if self._scheduled else None
        return timer is not None and timer < by

    @property
    def next_timer(self) -> float | None:
        while self._scheduled and self._scheduled[0].cancelled():
            self._timer_cancelled_count = max(getattr(self, "_timer_cancelled_count", 0) - 1, 0)
            heapq.heappop(self._scheduled)._scheduled = False
        return self._scheduled[0].when() if self._scheduled else None

    def step(self) -> None:
        """One round of what is ready."""
        self.stop()
        self.run_forever()

    def bury(self) -> None:
        """Let go of everything that never came to its end, without a word."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for task in asyncio.all_tasks(self):
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                with suppress(BaseException):
                    task.get_coro().close()
            self.close()


class Process:
    """A loop with a name, that may be stopped, continued or killed."""

    def __init__(self, universe: Universe, name: str) -> None:
        self.name = name
        self.loop = ProcessLoop(universe)
        self.alive = True
        self.stopped = False

    @property
    def running(self) -> bool:
        return self.alive and not self.stopped

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.loop.create_task(work)

    @contextmanager
    def inside(self) -> Iterator[None]:
        """For what has to be made within a running loop."""
        asyncio._set_running_loop(self.loop)
        try:
            yield
        finally:
            asyncio._set_running_loop(None)


class Universe:
    def __init__(self, chance: Random) -> None:
        self.time = 0.0
        self.chance = chance
        self._processes: list[Process] = []
        self._graveyard: list[Process] = []
        self._events: list[tuple[float, int, Callable[[], object]]] = []
        self._serial = count()

    @property
    def now(self) -> datetime:
        return START + timedelta(seconds=self.time)

    def process(self, name: str) -> Process:
        made = Process(self, name)
        self._processes.append(made)
        return made

    def kill(self, process: Process) -> None:
        """As kill -9: nothing of it ever runs again."""
        process.alive = False
        if process in self._processes:
            self._processes.remove(process)
            self._graveyard.append(process)

    def at(self, time: float, event: Callable[[], object]) -> None:
        heapq.heappush(self._events, (max(time, self.time), next(self._serial), event))

    def after(self, seconds: float, event: Callable[[], object]) -> None:
        self.at(self.time + seconds, event)

    def run_until(self, end: float) -> None:
        while True:
            self._run_what_is_ready()
            following = self._next()
            if following is None or following > end:
                self.time = max(self.time, end)
                return
            self.time = max(self.time, following)
            while self._events and self._events[0][0] <= self.time:
                heapq.heappop(self._events)[2]()

    def close(self) -> None:
        for process in [*self._processes, *self._graveyard]:
            process.loop.bury()

    def _run_what_is_ready(self) -> None:
        for _ in range(_MOST_STEPS):
            by = self.time + _TICK
            ready = [one for one in self._processes if not one.stopped and one.loop.due(by)]
            if not ready:
                return
            one = ready[0] if len(ready) == 1 else self.chance.choice(ready)
            one.loop.step()
            self.time += _STEP
        raise RuntimeError("something happens again and again at one moment")

    def _next(self) -> float | None:
        timers = [one.loop.next_timer for one in self._processes if not one.stopped]
        if self._events:
            timers.append(self._events[0][0])
        return min((timer for timer in timers if timer is not None), default=None)


class ProcessClock(SystemClock):
    """Each process has a monotonic clock of its own; the wall clock is the database's, as all see it."""

    def __init__(self, universe: Universe, began: float) -> None:
        self._universe = universe
        self._began = began

    def now(self) -> datetime:
        return self._universe.now

    def monotonic(self) -> float:
        return self._began + self._universe.time
