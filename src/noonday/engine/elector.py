"""Decides whether this instance plans: campaigns, renews, and knows how long it may trust in its term."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.engine.counters import Counters
from noonday.engine.loop import Actor, Wish
from noonday.ports import Leadership, Telemetry
from noonday.store.database import Database


class Elector(Actor):
    """Without a Leadership it leads alone, in term 0, and its fence lets everything through."""

    name = "elector"

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        leadership: Sequence[Leadership],  # the first that can be reached decides
        counters: Counters,
        telemetry: Telemetry,
        instance_id: str,
    ) -> None:
        super().__init__(clock=clock)
        self._alone = True
        self._opened = asyncio.Event()

    @property
    def leading(self) -> bool:
        """May it plan now? False as soon as the trust ran out, whatever the renewal is doing."""
        return self._alone

    @property
    def term(self) -> int:
        return 0

    def fence(self, conn: Connection) -> None:
        """Raises NotLeader in a transaction of a term that is over; a newer term waits until it ends."""

    async def wait(self) -> None:
        """Returns as soon as it leads."""
        if not self.leading:
            await self._opened.wait()

    async def resign(self) -> None:
        """At shutdown: another one leads at once."""

    async def run_once(self) -> Wish:
        return timedelta(minutes=1)
