"""One answer for one Idempotency-Key: the first call is answered, the same call again hears the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import structlog

from noonday.clock import Clock
from noonday.control.errors import KeyReused, StillAnswering
from noonday.domain.errors import Unavailable
from noonday.store import replays
from noonday.store.database import Database
from noonday.store.replays import Answer, Claim

__all__ = ["Answer", "Answers", "Claim"]

log = structlog.get_logger(__name__)


class Answers:
    """Whoever answers holds a lease on the key: if its process dies, the key is free when that runs out."""

    def __init__(
        self,
        db: Database,
        clock: Clock,
        *,
        keep: timedelta = timedelta(hours=24),
        lease: timedelta = timedelta(seconds=60),
    ) -> None:
        self._db = db
        self._clock = clock
        self._keep = keep
        self._lease = lease

    async def begin(self, key: str, fingerprint: str) -> Claim | Answer:
        """The right to answer, or the answer that was given before."""
        claim = Claim(key, self._clock.now())
        until = claim.at + self._lease
        known = await self._db.write(lambda conn: replays.take(conn, claim, fingerprint, until))
        if known is None:
            return claim
        if known.fingerprint != fingerprint:
            raise KeyReused("this Idempotency-Key came before with another request: each needs its own")
        if known.answer is None:
            raise StillAnswering("the first request with this Idempotency-Key is still being answered")
        return known.answer

    @asynccontextmanager
    async def held(self, claim: Claim) -> AsyncIterator[None]:
        """Keep the lease alive for as long as the answer takes."""
        renewing = asyncio.create_task(self._renew(claim), name="replay lease")
        try:
            yield
        finally:
            renewing.cancel()

    async def finish(self, claim: Claim, answer: Answer) -> None:
        """Remember the answer. Whoever cannot is still right to give it: the key is only free too early."""
        until = self._clock.now() + self._keep
        try:
            kept = await self._db.write(partial(replays.finish, claim=claim, answer=answer, until=until))
        except Unavailable as exc:
            log.warning("an answer could not be remembered", action="replays.finish", error=str(exc))
            return
        if not kept:
            log.warning("an answer came too late to be remembered", action="replays.finish")

    async def free(self, claim: Claim) -> None:
        """Nothing worth remembering came of it: the next call is answered anew."""
        try:
            await self._db.write(partial(replays.free, claim=claim))
        except Unavailable as exc:
            log.warning("a key stays taken for a while", action="replays.free", error=str(exc))

    async def _renew(self, claim: Claim) -> None:
        while True:
            await asyncio.sleep(self._lease.total_seconds() / 3)
            try:
                until = self._clock.now() + self._lease
                await self._db.write(partial(replays.extend, claim=claim, until=until))
            except Unavailable as exc:
                log.warning("a key may be free too early", action="replays.renew", error=str(exc))
