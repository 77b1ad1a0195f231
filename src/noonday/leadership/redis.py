"""The leader's lease as a Redis key, with its term from the store."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial

from noonday.clock import Clock
from noonday.domain.errors import Unavailable
from noonday.leadership.database import candidate, lives_here
from noonday.leadership.keys import RedisKey
from noonday.ports import Leader
from noonday.redis_link import RedisLink
from noonday.store import leadership
from noonday.store.database import Database
from noonday.store.leadership import Candidate


class RedisLeadership:
    """The key says who may lead; the row is kept alive beside it, so that its twin elects nobody else.

    The store comes first in a renewal and last in an election: one that cannot reach it holds no key for
    long, and another may lead.
    """

    name = "redis"

    def __init__(
        self, link: RedisLink, db: Database, clock: Clock, *, key: str, ttl: timedelta, holder: str
    ) -> None:
        self.key = key
        self.ttl = ttl
        self.holder = holder
        self._lease = RedisKey(link, key)
        self._db = db
        self._clock = clock
        lives_here(self)

    async def campaign(self) -> int | None:
        if not await self._lease.take(self.holder, self.ttl):
            return None
        try:
            return await self._db.write(
                partial(leadership.take_term, me=self._me(), now=self._clock.now(), unconditional=True)
            )
        except BaseException:
            with suppress(Unavailable):
                await self._lease.free(self.holder)
            raise

    async def renew(self, term: int) -> bool:
        extended = await self._db.write(
            partial(leadership.extend, me=self._me(), term=term, now=self._clock.now())
        )
        return extended and await self._lease.take(self.holder, self.ttl)

    async def resign(self, term: int) -> None:
        """The key goes first, so that whoever hears of it finds it free."""
        try:
            await self._lease.free(self.holder)
        finally:
            await self._db.write(partial(leadership.give_up, name=self.key, holder=self.holder, term=term))

    async def leader(self) -> Leader | None:
        found = await self._lease.holder()
        if found is None:
            return None
        holder, left = found
        row = await self._db.read(partial(leadership.look, name=self.key, now=self._clock.now()))
        # Between the key and its term there is a moment in which an election is not yet complete.
        term = row.term if row is not None and row.holder == holder else 0
        return Leader(holder=holder, term=term, left=left)

    def _me(self) -> Candidate:
        return candidate(self.key, self.holder, self.ttl)
