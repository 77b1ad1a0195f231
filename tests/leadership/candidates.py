"""Candidates for one leadership, in Redis or in the database, and ways to bring the end of a lease."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Protocol

from sqlalchemy import update

from noonday.clock import Clock, SystemClock
from noonday.ids import new_id
from noonday.leadership.database import DatabaseLeadership
from noonday.leadership.redis import RedisLeadership
from noonday.ports import Leader, Leadership
from noonday.redis_link import RedisLink
from noonday.store import leadership as terms
from noonday.store.database import Database
from noonday.store.tables import leadership

TTL = timedelta(seconds=30)  # far longer than a test: what ends, ends on purpose


class Elections(Protocol):
    """Where candidates meet."""

    db: Database
    key: str

    def candidate(self, holder: str) -> Leadership: ...

    async def lapse(self) -> None:
        """The present lease runs out."""
        ...


def unique_key() -> str:
    return f"leader-{new_id(SystemClock().now())}"


@dataclass
class InDatabase:
    db: Database
    clock: Clock = field(default_factory=SystemClock)
    key: str = field(default_factory=unique_key)

    def candidate(self, holder: str) -> DatabaseLeadership:
        return DatabaseLeadership(self.db, self.clock, key=self.key, ttl=TTL, holder=holder)

    async def lapse(self) -> None:
        await lapse_row(self.db, self.key, self.clock)


@dataclass
class InRedis:
    db: Database
    link: RedisLink
    clock: Clock = field(default_factory=SystemClock)
    key: str = field(default_factory=unique_key)

    def candidate(self, holder: str) -> RedisLeadership:
        return RedisLeadership(self.link, self.db, self.clock, key=self.key, ttl=TTL, holder=holder)

    async def lapse(self) -> None:
        await lapse_row(self.db, self.key, self.clock)
        await self.link.call("DEL", self.key)


async def lapse_row(db: Database, key: str, clock: Clock) -> None:
    past = clock.now() - timedelta(hours=1)
    change = update(leadership).where(leadership.c.name == key).values(expires_at=past)
    await db.write(lambda conn: conn.execute(change))


async def row(db: Database, key: str) -> terms.Incumbent:
    found = await db.read(lambda conn: terms.look(conn, key, SystemClock().now()))
    assert found is not None
    return found


async def the_leader(candidate: Leadership) -> Leader:
    found = await candidate.leader()
    assert found is not None
    return found
