"""The one shell around every actor: run it, sleep as it wishes, outlive its errors."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import ClassVar, Final, Protocol

import structlog
from sqlalchemy.exc import InterfaceError, OperationalError

from noonday.clock import Clock
from noonday.domain.errors import NotLeader, Unavailable
from noonday.store.trying import StoreDown

log = structlog.get_logger(__name__)

# When an actor wants to run again unless it is woken before: a moment of the wall clock (due times), a span
# of the monotonic clock (leases), or None = only when woken.
Wish = datetime | timedelta | None
AT_ONCE: Final = timedelta()

_FIRST_BACKOFF = 0.1
_LONGEST_BACKOFF = 3.0
_REMIND_EVERY = 60.0


class Gate(Protocol):
    """Says when an actor may work: for those that only the leader runs."""

    async def wait(self) -> None: ...


class Actor(ABC):
    """A loop of one page. Cancelling `run` is stopping; `run_once` is one testable pass."""

    name: ClassVar[str]
    gap: ClassVar[float] = 0.0  # seconds between two passes, however often it is woken
    head_start: ClassVar[float] = 0.0  # seconds that others have before its first pass
    gate: Gate | None = None

    def __init__(self, *, clock: Clock, wake: asyncio.Event | None = None) -> None:
        self.clock = clock
        self.wake = asyncio.Event() if wake is None else wake

    @abstractmethod
    async def run_once(self) -> Wish: ...

    async def run(self) -> None:
        troubles = Troubles(self.name, self.clock)
        await asyncio.sleep(self.head_start)
        while True:
            if self.gate is not None:
                await self.gate.wait()
            began = self.clock.monotonic()
            try:
                wish = await self.run_once()
            except NotLeader:
                continue  # the gate knows, and opens again with the next term
            except Exception as exc:
                await asyncio.sleep(troubles.after(exc))
                continue
            troubles.over()
            await self._sleep(wish)
            rest = self.gap - (self.clock.monotonic() - began)
            if rest > 0:
                await asyncio.sleep(rest)

    async def _sleep(self, wish: Wish) -> None:
        if wish == AT_ONCE:  # a turn for the others is all the rest it takes
            self.wake.clear()
            await asyncio.sleep(0)
        elif isinstance(wish, timedelta):
            await nap(wish.total_seconds(), self.wake)
        else:
            await self.clock.sleep_until(wish, self.wake)


async def nap(seconds: float, wake: asyncio.Event) -> None:
    """Sleep on the monotonic clock, so that no step of the wall clock makes a lease late; clears `wake`."""
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        pass
    wake.clear()


class Troubles:
    """Says each kind of error once and then once a minute, counts the rest, and says when it is over.

    That the database is away it says itself, once for all actors: here it is only reminded of.
    """

    def __init__(self, name: str, clock: Clock) -> None:
        self._name = name
        self._clock = clock
        self._count = 0
        self._loud = False
        self._said: dict[str, float] = {}

    def after(self, exc: Exception) -> float:
        """How many seconds to wait before the next try."""
        self._count += 1
        kind = type(exc).__name__
        now = self._clock.monotonic()
        if isinstance(exc, StoreDown):
            self._said.setdefault(kind, now)
        if now - self._said.get(kind, float("-inf")) >= _REMIND_EVERY:
            self._said[kind] = now
            self._loud = True
            log.error(
                "an actor failed and tries again",
                action=f"{self._name}.failed",
                error=first_line(exc),
                failures=self._count,
                exc_info=None if is_outage(exc) else exc,
            )
        return float(min(_FIRST_BACKOFF * 2 ** min(self._count - 1, 10), _LONGEST_BACKOFF))

    def over(self) -> None:
        if self._loud:
            log.info("an actor works again", action=f"{self._name}.back", failures=self._count)
        self._count, self._loud = 0, False
        self._said.clear()


def first_line(exc: BaseException) -> str:
    text = str(exc).strip().split("\n", 1)[0]
    return f"{type(exc).__name__}: {text}"[:500]


def is_outage(exc: BaseException) -> bool:
    """Is it the world that is down, rather than something wrong with what was asked?"""
    return isinstance(exc, Unavailable | OperationalError | InterfaceError | OSError | TimeoutError)
