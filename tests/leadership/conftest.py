"""Redis and the database as keepers of leases and locks."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noonday.redis_link import RedisLink
from noonday.store.database import Database
from tests.leadership.candidates import Elections, InDatabase, InRedis


@pytest.fixture
async def link(redis_url: str) -> AsyncIterator[RedisLink]:
    made = RedisLink(redis_url)
    yield made
    await made.close()


@pytest.fixture(params=["database", "redis"])
async def elections(
    request: pytest.FixtureRequest, db: Database, link: RedisLink
) -> AsyncIterator[Elections]:
    """Each keeper of leases, on each database."""
    made: Elections = InDatabase(db) if request.param == "database" else InRedis(db, link)
    yield made
    await link.call("DEL", made.key)
