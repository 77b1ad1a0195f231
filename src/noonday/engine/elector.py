"""Decides whether this instance plans: campaigns, renews, and knows how long it may trust in its term."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.errors import NotLeader
from noonday.engine.loop import Actor, Wish, first_line, is_outage
from noonday.patience import Patience
from noonday.ports import Leadership, Telemetry
from noonday.store import leadership as terms
from noonday.store.database import Database
from noonday.store.notices import INSTANCES

log = structlog.get_logger(__name__)

T = TypeVar("T")

_TRUSTED = 0.9  # of the time to live: clocks and schedulers are not exact
_LOST = "another instance was elected"
_STOPS = "this instance stops"
_NOW = 0.001  # seconds: a nap may end a moment early
_SPREAD = 0.2  # seconds over which those who wait for the end of a lease campaign


@dataclass(frozen=True, slots=True)
class Reign:
    """One term of this instance. Never changed, only replaced: threads read it."""

    term: int
    keeper: Leadership  # where the lease is
    trusted_until: float  # of the monotonic clock


class Elector(Actor):
    """Without a Leadership it leads alone, in term 0, and its fence lets everything through.

    The store decides in whose term a transaction plans; the trust only saves one that is bound to be refused.
    """

    name = "elector"
    gap = 0.1

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        leadership: Sequence[Leadership],  # the first that can be reached decides
        telemetry: Telemetry,
        instance_id: str,
    ) -> None:
        super().__init__(clock=clock, wake=db.subscribe(INSTANCES))
        self._keepers = tuple(leadership)
        self._ttl = self._keepers[0].ttl.total_seconds() if self._keepers else 0.0
        self._telemetry = telemetry
        self._id = instance_id
        self._own = zlib.crc32(instance_id.encode()) / 2**32  # so that not all campaign at once
        self._home = asyncio.get_running_loop()
        self._opened = asyncio.Event()
        self._turn = asyncio.Lock()  # a renewal under way must not take back what was given up
        self._reign: Reign | None = None
        self._refused = 0  # the term that a fence found to be over
        self._renew_at = 0.0
        self._answered_at = float("-inf")  # when the first keeper last did
        self._resigned = False

    @property
    def leading(self) -> bool:
        """May it plan now? False as soon as the trust ran out, whatever the renewal is doing."""
        return not self._keepers or self._trusts(self._reign)

    @property
    def term(self) -> int:
        """The term it leads in; 0 when it does not, or leads alone."""
        reign = self._reign
        return reign.term if reign is not None and self._trusts(reign) else 0

    @property
    def lease(self) -> str:
        """Where it is kept, "redis" or "database"; nowhere when it does not lead, or leads alone."""
        reign = self._reign
        return reign.keeper.name if reign is not None and self._trusts(reign) else ""

    def _trusts(self, reign: Reign | None) -> bool:
        if reign is None or reign.term == self._refused:
            return False
        return self.clock.monotonic() < reign.trusted_until

    def fence(self, conn: Connection) -> None:
        """Raises NotLeader in a transaction of a term that is over; a newer term waits until it ends."""
        if not self._keepers:
            return
        reign = self._reign
        if reign is None or not self._trusts(reign):
            raise NotLeader
        keeper = reign.keeper
        try:
            terms.check(conn, keeper.key, self._id, reign.term, keeper.ttl)
        except NotLeader:
            self._refused = reign.term
            with suppress(RuntimeError):  # its loop is closed: nobody campaigns any more
                self._home.call_soon_threadsafe(self.wake.set)
            raise

    async def wait(self) -> None:
        """Returns as soon as it leads."""
        while not self.leading:
            self._opened.clear()
            await self._opened.wait()

    async def resign(self) -> None:
        """At shutdown: another one leads at once."""
        async with self._turn:
            self._resigned = True
            if self._reign is not None:
                await self._abdicate(self._reign, _STOPS)

    async def run_once(self) -> Wish:
        async with self._turn:
            if self._resigned or not self._keepers:
                return None
            reign = self._reign
            if reign is None:
                return await self._campaign()
            if reign.term == self._refused:
                self._end(reign, _LOST)
                return await self._campaign()
            left = self._renew_at - self.clock.monotonic()
            if left <= _NOW:
                return await self._renew(reign)
            if await self._replaced(reign):
                self._end(reign, _LOST)
                return await self._campaign()
            return timedelta(seconds=left)

    async def _replaced(self, reign: Reign) -> bool:
        """Woken before its time: is it because another one was elected?"""
        try:
            found = await self._ask(self._keepers[-1], self._keepers[-1].leader())
        except Exception as exc:
            _outage(exc)
            return False
        return found is not None and found.term > reign.term

    async def _renew(self, reign: Reign) -> Wish:
        """The last keeper is the store, whose word on a term is final; those before it may be mistaken."""
        trouble: Exception | None = None
        for keeper in self._keepers:
            began = self.clock.monotonic()
            try:
                kept, trouble = await self._ask(keeper, keeper.renew(reign.term)), None
            except Exception as exc:
                kept, trouble = False, _outage(exc)
            if kept:
                return self._go_on(reign, keeper, began)
        if trouble is None:
            self._end(reign, _LOST)
            return await self._campaign()
        if not self._trusts(reign):
            await self._abdicate(reign, f"it could not be renewed in time: {first_line(trouble)}")
        raise trouble

    async def _campaign(self) -> Wish:
        self._telemetry.campaigned()
        trouble: Exception | None = None
        for keeper in self._keepers:
            began = self.clock.monotonic()
            if keeper is not self._keepers[0] and began - self._answered_at < self._ttl / 3:
                return timedelta(seconds=self._ttl / 9)  # the first may be back in a moment
            try:
                term = await self._ask(keeper, keeper.campaign())
            except Exception as exc:
                trouble = _outage(exc)
                continue
            if term is None:
                return await self._until_it_ends(keeper)
            return self._begin(Reign(term, keeper, began + self._ttl * _TRUSTED), began)
        assert trouble is not None
        raise trouble

    async def _until_it_ends(self, keeper: Leadership) -> timedelta:
        """The next campaign: when the present lease would end, and now and then before."""
        try:
            found = await self._ask(keeper, keeper.leader())
        except Exception as exc:
            _outage(exc)
            found = None
        left = 0.0 if found is None else max(found.left.total_seconds(), 0.0)
        return timedelta(seconds=min(left + self._own * _SPREAD, self._ttl / 3 * (0.9 + 0.1 * self._own)))

    def _begin(self, reign: Reign, began: float) -> timedelta:
        log.info(
            "leads: this instance plans", action="leader.begin", term=reign.term, lease=reign.keeper.name
        )
        return self._trust(reign, began)

    def _go_on(self, reign: Reign, keeper: Leadership, began: float) -> timedelta:
        if not self._trusts(reign):
            log.warning("the leader's lease was renewed late", action="leader.late", term=reign.term)
        if keeper is not reign.keeper:
            log.info(
                "the leader's lease is kept elsewhere",
                action="leader.moved",
                term=reign.term,
                lease=keeper.name,
            )
        return self._trust(Reign(reign.term, keeper, began + self._ttl * _TRUSTED), began)

    def _trust(self, reign: Reign, began: float) -> timedelta:
        """The clock was read before the request was sent: a slow answer makes the trust no longer."""
        self._reign = reign
        if self._trusts(reign):
            self._opened.set()
        # The leader should be the first to notice that its preferred keeper is back.
        beat = self._ttl / 3 if reign.keeper is self._keepers[0] else self._ttl / 9
        self._renew_at = began + beat
        return timedelta(seconds=max(self._renew_at - self.clock.monotonic(), 0.0))

    def _end(self, reign: Reign, why: str) -> None:
        self._reign = None
        say = log.info if why == _STOPS else log.warning
        say("leads no more", action="leader.end", term=reign.term, why=why)

    async def _abdicate(self, reign: Reign, why: str) -> None:
        self._end(reign, why)
        for keeper in self._keepers:
            try:
                await self._ask(keeper, keeper.resign(reign.term))
            except Exception as exc:
                _outage(exc)  # the lease ends by itself

    async def _ask(self, keeper: Leadership, request: Awaitable[T]) -> T:
        """Bounded: while one request hangs, no other is sent."""
        async with Patience(max(self._ttl / 3, 1.0)):
            answer = await request
        if keeper is self._keepers[0]:
            self._answered_at = self.clock.monotonic()
        return answer


def _outage(exc: Exception) -> Exception:
    """Only what the world did; the rest is a mistake of ours and goes on its way."""
    if not is_outage(exc):
        raise exc
    return exc
