"""The leader's lease as a row: the twin for where there is no Redis, or none that answers."""

from __future__ import annotations

from datetime import timedelta

from noonday.ports import Leader
from noonday.store.database import Database


class DatabaseLeadership:
    name = "database"

    def __init__(self, db: Database, *, key: str, ttl: timedelta, holder: str) -> None:
        self.ttl = ttl

    async def campaign(self) -> int | None:
        raise NotImplementedError

    async def renew(self, term: int) -> bool:
        raise NotImplementedError

    async def resign(self, term: int) -> None:
        raise NotImplementedError

    async def leader(self) -> Leader | None:
        raise NotImplementedError
