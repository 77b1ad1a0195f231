"""The webhook patterns of all enabled jobs, kept in memory until a notice tells that jobs have changed."""

from __future__ import annotations

import asyncio

from noonday.domain.webhooks import Patterns
from noonday.store import webhooks
from noonday.store.database import Database, Subscription
from noonday.store.notices import JOBS

__all__ = ["KnownPatterns"]


class KnownPatterns:
    """What it says is checked again where it counts: in the transaction that starts the jobs."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._notices: Subscription | None = None
        self._seen = -1  # of the notices; nothing was read yet
        self._patterns: Patterns[str] = Patterns()
        self._reading = asyncio.Lock()

    async def match(self, path: str, *, anew: bool = False) -> list[str]:
        """The ids of the jobs that wait for this path.

        A notice from another instance may take a moment: nobody is told "no such path" without a fresh look.
        """
        fresh = await self._follow(anew=anew)
        found = self._patterns.match(path)
        if found or fresh:
            return found
        await self._follow(anew=True)
        return self._patterns.match(path)

    async def _follow(self, *, anew: bool) -> bool:
        """Read them again if something has changed, or to be sure; was it so?"""
        async with self._reading:
            if self._notices is None:
                self._notices = self._db.subscribe(JOBS)
            told = self._notices.told
            if told == self._seen and not anew:
                return False
            self._patterns = await self._db.read(webhooks.wanted)
            self._seen = told
            return True
