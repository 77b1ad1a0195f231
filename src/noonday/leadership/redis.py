"""The leader's lease as a Redis key, with its term from the store."""

from __future__ import annotations

from datetime import timedelta

from noonday.ports import Leader
from noonday.redis_link import RedisLink
from noonday.store.database import Database


class RedisLeadership:
    name = "redis"

    def __init__(self, link: RedisLink, db: Database, *, key: str, ttl: timedelta, holder: str) -> None:
        self.ttl = ttl

    async def campaign(self) -> int | None:
        raise NotImplementedError

    async def renew(self, term: int) -> bool:
        raise NotImplementedError

    async def resign(self, term: int) -> None:
        raise NotImplementedError

    async def leader(self) -> Leader | None:
        raise NotImplementedError
