"""Many runs that become due at one moment: claimed further ahead than a few, so that the moment is kept."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Final, Protocol

from sqlalchemy import Connection

from noonday.store import instances
from noonday.store.database import Database

EARLIEST: Final = timedelta(seconds=1.5)  # before the moment
NEAR: Final = timedelta(milliseconds=400)  # what is so near is left to the usual lead, which is no longer
_WIDTH: Final = timedelta(milliseconds=50)  # who comes so close behind belongs to it
MOST: Final = 10_000  # in the hands of one instance
FOR_EACH: Final = timedelta(microseconds=150)  # at least, until it is claimed


def longest_lead(usual: timedelta) -> timedelta:
    """For crowds; none where nothing is claimed ahead."""
    return EARLIEST if usual else usual


class Count(Protocol):
    def __call__(self, conn: Connection, *, until: datetime, most: int) -> int:
        """How many runs wait for that moment, or an earlier one; more than `most` are not counted."""
        ...


class Crowds:
    """Once before each moment that is a while away it asks how many runs wait for it. Where that is more than
    two claims, each instance may claim its share ahead, by its slots among all slots. What then finds no slot
    soon is handed back, as always.
    """

    def __init__(
        self, *, db: Database, slots: int, batch: int, longest: timedelta, spare: timedelta = timedelta()
    ) -> None:
        self._db = db
        self._slots = slots
        self._batch = batch
        self._spare = spare  # all of it is to be claimed so long before the moment
        self._longest = longest + spare
        self._asked: datetime | None = None
        self._until: datetime | None = None
        self.share = 0  # of the crowd that is awaited

    def lead(self, now: datetime, usual: timedelta) -> timedelta:
        """As long as it is awaited; no longer than ever, should somebody set the clock back."""
        if self._until is None:
            return usual
        return max(usual, min(self._until - now, self._longest + _WIDTH))

    def seen(self, next_at: datetime | None) -> None:
        """A claim found that what is next is due then."""
        if self._until is not None and (next_at is None or next_at > self._until):
            self._until, self.share = None, 0

    async def before(self, next_at: datetime, now: datetime, count: Count, claim: float) -> datetime | None:
        """When to come again for it, or None: nothing but the usual. A claim takes so many seconds."""
        if next_at == self._asked or next_at - now < min(NEAR, self._longest):
            return None
        if next_at - now > self._longest:
            return next_at - self._longest if self._longest else None
        self._asked = next_at
        share = await self._db.read(partial(self._look, next_at + _WIDTH, now, count))
        if share <= self._batch:
            return None
        self._until, self.share = next_at + _WIDTH, share
        each = max(FOR_EACH, timedelta(seconds=claim / self._batch))
        return next_at - min(share * each + self._spare, self._longest)

    def _look(self, until: datetime, now: datetime, count: Count, conn: Connection) -> int:
        found = count(conn, until=until, most=MOST)
        if found <= 2 * self._batch:
            return 0
        working = instances.working(conn, now - instances.SILENT_AFTER)
        return int(found * self._slots / max(self._slots, sum(one.slots for one in working)))
