"""Carries a task's progress to the runner: from any thread, never blocking it, the newest report winning."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any, Final

from noonday.ports import Run
from noonday.targets.tasks import RunContext

log = logging.getLogger(__name__)


class Reporter:
    """From its making until its `end`, which only one that has `spoken` needs, `report` may be called from
    any thread."""

    # Most tasks never report: what only reports need is set by the first one.
    _fraction: float | None = None
    _message: str | None = None
    _waiting = False
    _wake: asyncio.Event | None = None
    _pump: asyncio.Task[None] | None = None
    spoken = False
    over = False  # set when the task has ended: what comes now is not heard

    _lock: Final = threading.Lock()  # one for all: reports are rare, and short

    def __init__(self, run: Run, task: asyncio.Task[Any]) -> None:
        self._run = run
        self._task = task  # of the run: it knows the loop

    def context(self, asked_to_stop: Callable[[], int] | None = None) -> RunContext:
        """What the task sees of its run. Without other word it is asked to stop by cancelling."""
        run = self._run
        execution = run.claim.execution
        return RunContext(
            execution.id,
            execution.attempt,
            execution.scheduled_for,
            run.claim.job.name,
            run.config,
            self.report,
            run.output,
            asked_to_stop or self._task.cancelling,
        )

    async def end(self, *, deliver: bool) -> None:
        """Carries nothing more; what still waits is delivered first, if it shall be."""
        pump, self._pump = self._pump, None  # its context knows the way back: that would be a circle
        if pump is not None:
            pump.cancel()
            await asyncio.wait([pump])
        if deliver and self._waiting:
            await self._deliver()

    def report(self, fraction: float | None, message: str | None) -> None:
        with self._lock:
            self._fraction = self._fraction if fraction is None else fraction
            self._message = self._message if message is None else message
            if self._waiting:
                return
            self._waiting = self.spoken = True
        try:
            self._task.get_loop().call_soon_threadsafe(self._knock)
        except RuntimeError:
            log.debug("a report came after the loop had closed")

    def _knock(self) -> None:
        if self.over:
            return
        if self._wake is None:
            self._wake = asyncio.Event()
            self._pump = self._task.get_loop().create_task(self._carry(self._wake))
        self._wake.set()

    async def _carry(self, wake: asyncio.Event) -> None:
        while True:
            await wake.wait()
            wake.clear()
            await self._deliver()

    async def _deliver(self) -> None:
        with self._lock:
            if not self._waiting:
                return
            fraction, message = self._fraction, self._message
            self._waiting = False
        try:
            await self._run.progress(fraction, message)
        except Exception:  # progress is a courtesy: losing one report must not fail the run
            log.warning("a progress report was lost", exc_info=True)
