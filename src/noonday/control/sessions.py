"""Signing in with a browser: a key or a token is shown once, then a cookie stands for it until it ends."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.access import Caller
from noonday.domain.errors import Unidentified
from noonday.domain.keys import digest_of, prefix_of
from noonday.store import keys, sessions
from noonday.store.database import Database
from noonday.store.sessions import Session

__all__ = ["LONGEST", "Sessions"]

LONGEST: Final = timedelta(hours=12)
_CHANCE: Final = 32  # random bytes of a cookie
_LONGEST_AGENT: Final = 300
_LISTED: Final = 50
_TEXT = re.compile(r"ns_[0-9a-f]{64}")  # anything else is not looked up


class Sessions:
    """Nothing is held in memory: signing out, and revoking a key, act at once on all instances."""

    def __init__(self, db: Database, clock: Clock, *, chance: Callable[[int], bytes] = os.urandom) -> None:
        self._db = db
        self._clock = clock
        self._chance = chance

    async def begin(
        self, caller: Caller, *, key: str | None = None, ends_at: datetime | None = None, agent: str = ""
    ) -> tuple[Session, str]:
        """For a caller whose proof was found good: an API key, or a token that ends at that moment.

        The text is for the cookie; it cannot be had a second time.
        """
        text = f"ns_{self._chance(_CHANCE).hex()}"

        def work(conn: Connection) -> Session:
            now = self._clock.now()
            used = None if key is None else keys.get(conn, prefix_of(key) or "")
            if key is not None and (used is None or not used.in_force(now)):
                raise Unidentified("the key is not good any more")
            bounds = (now + LONGEST, ends_at, None if used is None else used.expires_at)
            made = Session(
                id=digest_of(text),
                name=caller.name,
                role=caller.role,
                service=caller.service,
                key_id=None if used is None else used.id,
                agent=agent[:_LONGEST_AGENT],
                created_at=now,
                expires_at=min(bound for bound in bounds if bound is not None),
            )
            sessions.add(conn, made)
            return made

        return await self._db.write(work), text

    async def find(self, text: str) -> Session | None:
        """None for one that is unknown, has ended, or whose key has."""
        if _TEXT.fullmatch(text) is None:
            return None
        return await self._db.read(lambda conn: sessions.get(conn, digest_of(text), self._clock.now()))

    async def caller(self, text: str) -> Caller | None:
        found = await self.find(text)
        return None if found is None else Caller(name=found.name, role=found.role, service=found.service)

    async def of_same(self, session: Session) -> list[Session]:
        """Where whoever has this one is signed in, here included; the newest first."""
        now = self._clock.now()
        return await self._db.read(lambda conn: sessions.of_same(conn, session, now, _LISTED))

    async def end_others(self, session: Session) -> int:
        """Returns how many have ended."""
        return await self._db.write(lambda conn: sessions.remove_others(conn, session))

    async def end(self, text: str) -> None:
        """Ending one that is over changes nothing."""
        if _TEXT.fullmatch(text) is not None:
            await self._db.write(lambda conn: sessions.remove(conn, digest_of(text)))
