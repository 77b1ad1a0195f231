"""Is the streams' road open? Every call to it goes through here; who waits for it is told of changes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final, TypeVar

import structlog

from noonday.clock import Clock
from noonday.domain.errors import RoadDown
from noonday.domain.execution import Road
from noonday.engine.loop import Actor, Wish, first_line
from noonday.patience import Patience
from noonday.ports import Queue

log = structlog.get_logger(__name__)

T = TypeVar("T")

PATIENCE: Final = 5.0  # seconds; a road that hangs is a road that failed, if it does not say so itself
_FIRST_PAUSE: Final = 0.1
_LONGEST_PAUSE: Final = 3.0
_STEADY: Final = 10.0  # seconds after which a road that came back is trusted again
_LOOK_EVERY: Final = timedelta(seconds=30)  # where nobody else uses it, as on an instance with the API alone


class Streams(Actor):
    """While the road is down the rows of version 2 are claimed in the database; this actor asks for it."""

    name = "streams"

    def __init__(self, *, queue: Queue | None, clock: Clock) -> None:
        super().__init__(clock=clock)
        self.up = queue is not None
        self.epoch = int(self.up)  # grows each time it opens: what lies on it may have changed
        self._queue = queue
        self._watching: list[asyncio.Event] = []
        self._pause = _FIRST_PAUSE
        self._since = float("-inf")  # of the monotonic clock: up since then
        self._ask_at = float("-inf")
        self._why = "there is no such road here"
        self._checked = False
        self._doubts: list[str] = []

    @property
    def roads(self) -> tuple[Road, ...]:
        """Whose work is to be claimed in the database itself."""
        return (Road.DATABASE,) if self.up else (Road.DATABASE, Road.STREAMS)

    @property
    def forgotten(self) -> int:
        """How often the road was found to have lost all that was on it."""
        return 0 if self._queue is None else self._queue.forgotten

    def watch(self, wake: asyncio.Event) -> None:
        """Set it whenever the road opens or closes."""
        self._watching.append(wake)

    async def ask(self, call: Callable[[Queue], Awaitable[T]], wait: timedelta = timedelta()) -> T:
        """What the road answers, within the patience and what it was told to `wait`; or RoadDown."""
        if not self.up:
            raise RoadDown(self._why)
        epoch = self.epoch
        try:
            return await self._bounded(call, wait)
        except RoadDown as exc:
            if self.up and self.epoch == epoch:
                self._fall(exc)
            raise

    async def run_once(self) -> Wish:
        if self.up:
            return await self._look()
        if (left := self._ask_at - self.clock.monotonic()) > 0:
            return timedelta(seconds=left)
        try:
            doubts = await self._bounded(lambda queue: queue.check(), timedelta())
        except RoadDown as exc:
            self._why = str(exc)
            return timedelta(seconds=self._rest())
        self._rise()
        self._say(doubts)
        return _LOOK_EVERY

    async def _look(self) -> Wish:
        """Is it fit, and is it there? Whoever uses it finds out sooner."""
        try:
            if self._checked:
                await self.ask(lambda queue: queue.depths())
            else:
                self._say(await self.ask(lambda queue: queue.check()))
        except RoadDown:
            return timedelta()
        return _LOOK_EVERY

    def _say(self, doubts: list[str]) -> None:
        """Each doubt once, and not again at each return of the road."""
        for doubt in doubts:
            if doubt not in self._doubts:
                log.warning(doubt, action="streams.doubt")
        self._checked, self._doubts = True, doubts

    async def _bounded(self, call: Callable[[Queue], Awaitable[T]], wait: timedelta) -> T:
        assert self._queue is not None, "without a queue the road is never up"
        try:
            async with Patience(PATIENCE + wait.total_seconds()):
                return await call(self._queue)
        except RoadDown:
            raise
        except TimeoutError as exc:
            raise RoadDown("it does not answer") from exc
        except Exception as exc:  # whatever is wrong with it, the database road goes on
            raise RoadDown(first_line(exc)) from exc

    def _fall(self, exc: RoadDown) -> None:
        self.up, self._why = False, str(exc)
        if self.clock.monotonic() - self._since > _STEADY:
            self._pause = _FIRST_PAUSE
        self._rest()
        log.warning(
            "the streams cannot be used: version 2 takes the database road",
            action="streams.down",
            error=self._why,
        )
        self._tell()
        self.wake.set()

    def _rise(self) -> None:
        self.up, self._since = True, self.clock.monotonic()
        self.epoch += 1
        log.info("the streams can be used again", action="streams.back")
        self._tell()

    def _rest(self) -> float:
        """Seconds until it is asked again, longer each time while it does not stay."""
        pause = self._pause
        self._ask_at = self.clock.monotonic() + pause
        self._pause = min(pause * 2, _LONGEST_PAUSE)
        return pause

    def _tell(self) -> None:
        for wake in self._watching:
            wake.set()
