"""A lock for users' own code, held across processes: it ends by itself, and is renewed while it is held."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from types import TracebackType
from typing import Protocol, Self

import structlog

from noonday.clock import Clock
from noonday.domain.errors import Conflict, LockLost, Unavailable

log = structlog.get_logger(__name__)

_TRUSTED = 0.9  # of the time to live
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5  # seconds between two tries to take a lock that is held


class Keeper(Protocol):
    """Where locks are kept. Each verb raises Unavailable when it cannot be known."""

    async def take(self, name: str, owner: str, ttl: timedelta) -> int | None:
        """A number larger than that of every owner before, or None while somebody holds it."""
        ...

    async def extend(self, name: str, owner: str, ttl: timedelta) -> bool: ...

    async def free(self, name: str, owner: str) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LockOptions:
    ttl: timedelta  # how soon others may take it after its holder died
    wait: timedelta | None = None  # how long `async with` waits for it; None = as long as it takes
    renew: bool = True


class Lock:
    """Made by `Locks.lock`. One object holds it once at a time.

    Like every lock with an end, it cannot stop a process that was paused for longer than the time to live.
    What must not happen twice hands `fence` to whatever it changes, which refuses a smaller number than it
    has seen.
    """

    def __init__(self, keeper: Keeper, clock: Clock, name: str, options: LockOptions) -> None:
        self.name = name
        self.fence = 0  # of the newest time it was held
        self._keeper = keeper
        self._clock = clock
        self._options = options
        self._owner: str | None = None
        self._trusted_until = 0.0
        self._lost = False
        self._renewal: asyncio.Task[None] | None = None
        self._body: asyncio.Task[object] | None = None
        self._cancels = 0  # asked for before we were
        self._stopped = False  # the body, by us

    @property
    def held(self) -> bool:
        """Is it ours now? False as soon as it could not be renewed in time."""
        return self._owner is not None and not self._lost and self._left > 0

    @property
    def lost(self) -> bool:
        """Was it taken from us, or could it not be renewed in time?"""
        return self._owner is not None and not self.held

    async def acquire(self, wait: timedelta | None = None) -> bool:
        """Is it ours? Tries until it is, or until `wait` is over; a wait of zero is one try."""
        if self._owner is not None:
            raise Conflict(f"the lock {self.name!r} is already held by this object: release it first")
        until = None if wait is None else self._clock.monotonic() + wait.total_seconds()
        pause = _FIRST_PAUSE
        while not await self._try():
            if until is not None:
                pause = min(pause, until - self._clock.monotonic())
                if pause <= 0:
                    return False
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_PAUSE)
        if self._options.renew:
            self._renewal = asyncio.create_task(self._keep(), name=f"lock {self.name}")
        return True

    async def release(self) -> bool:
        """Let the next one have it; was it ours until now?"""
        owner, held = self._owner, self.held
        if owner is None:
            return False
        await self._stop_renewing()
        self._owner = None
        return await self._keeper.free(self.name, owner) and held

    async def extend(self, ttl: timedelta | None = None) -> None:
        """Hold it for so long from now on, or for its time to live. Raises LockLost when it is not ours."""
        span = ttl or self._options.ttl
        began = self._clock.monotonic()
        if self._owner is None or self._lost or not await self._keeper.extend(self.name, self._owner, span):
            self._lost = self._owner is not None
            raise LockLost(f"the lock {self.name!r} is not held any more")
        self._trusted_until = began + span.total_seconds() * _TRUSTED

    async def __aenter__(self) -> Self:
        if not await self.acquire(self._options.wait):
            raise Conflict(f"the lock {self.name!r} is held by somebody else")
        self._body = asyncio.current_task()
        self._cancels = 0 if self._body is None else self._body.cancelling()
        self._stopped = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, stack: TracebackType | None
    ) -> None:
        """A lock that was lost on the way stops what it protects, and says so instead of CancelledError."""
        body, self._body = self._body, None
        broken = self.lost and kind is None
        if self._stopped and body is not None:
            others = body.uncancel() > self._cancels  # wanted it to end too
            broken = kind is asyncio.CancelledError and not others
        try:
            await self.release()
        except Unavailable as trouble:
            log.warning("a lock ends by itself", action="lock", lock=self.name, error=str(trouble))
        if broken:
            raise LockLost(f"the lock {self.name!r} could not be held until the end") from exc

    @property
    def _left(self) -> float:
        return self._trusted_until - self._clock.monotonic()

    async def _try(self) -> bool:
        owner, began = os.urandom(16).hex(), self._clock.monotonic()
        asked = asyncio.ensure_future(self._keeper.take(self.name, owner, self._options.ttl))
        try:
            fence = await asyncio.shield(asked)
        except asyncio.CancelledError:
            await self._give_back(asked, owner)
            raise
        if fence is None:
            return False
        self.fence, self._owner, self._lost = fence, owner, False
        self._trusted_until = began + self._options.ttl.total_seconds() * _TRUSTED
        return True

    async def _give_back(self, asked: asyncio.Future[int | None], owner: str) -> None:
        """Whoever waited is gone: nobody would release it."""
        with suppress(Unavailable):
            if await asked is not None:
                await self._keeper.free(self.name, owner)

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._options.ttl.total_seconds() / 3)
            try:
                async with asyncio.timeout(max(self._left, 0.0)):
                    await self._renew()
            except (TimeoutError, LockLost) as exc:
                log.warning("a lock was lost", action="lock", lock=self.name, error=str(exc) or "no answer")
                break
        self._lost = True
        if self._body is not None:
            self._stopped = self._body.cancel()

    async def _renew(self) -> None:
        """Until it succeeds; an outage shorter than the time to live harms nobody."""
        while True:
            try:
                return await self.extend()
            except LockLost:
                raise
            except Exception as exc:
                log.debug("a lock is not renewed yet", action="lock", lock=self.name, error=str(exc))
                await asyncio.sleep(self._options.ttl.total_seconds() / 20)

    async def _stop_renewing(self) -> None:
        renewal, self._renewal = self._renewal, None
        if renewal is not None and not renewal.done():
            renewal.cancel()
            await asyncio.wait([renewal])
