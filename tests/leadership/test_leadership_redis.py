"""The leader's key in Redis: what people see of it, what becomes of it when Redis or the store is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from noonday.domain.errors import RoadDown, Unavailable
from noonday.redis_link import RedisLink
from noonday.store.database import Database
from tests.leadership.candidates import TTL, InDatabase, InRedis, row, the_leader

NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


@pytest.fixture
async def elections(db: Database, link: RedisLink) -> AsyncIterator[InRedis]:
    made = InRedis(db, link)
    yield made
    await link.call("DEL", made.key)


@pytest.fixture
def no_store() -> Iterator[Database]:
    made = Database(NOWHERE)
    yield made
    made.close_now()


async def test_it_shows_the_leader_to_whoever_asks_redis(elections: InRedis) -> None:
    await elections.candidate("instance-7").campaign()
    assert await elections.link.call("GET", elections.key) == "instance-7"
    assert 0 < await elections.link.call("PTTL", elections.key) <= TTL.total_seconds() * 1000


async def test_it_sets_a_key_that_vanished_again_without_a_new_term(elections: InRedis) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    await elections.link.call("DEL", elections.key)
    assert await one.renew(1) is True
    assert await two.campaign() is None
    leader = await the_leader(two)
    assert (leader.holder, leader.term) == ("one", 1)


async def test_it_leaves_the_key_to_whoever_took_it_after_it_vanished(elections: InRedis) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    await elections.link.call("DEL", elections.key)
    assert await two.campaign() == 2  # although the row of the first still lives
    assert await one.renew(1) is False
    assert await elections.link.call("GET", elections.key) == "two"


async def test_its_holder_leads_although_the_twin_lives(elections: InRedis) -> None:
    """One that lost Redis and leads by the database makes way for one that has both."""
    twin = InDatabase(elections.db, key=elections.key)
    cut_off = twin.candidate("cut-off")
    assert await cut_off.campaign() == 1
    whole = elections.candidate("whole")
    assert await whole.campaign() == 2
    assert await cut_off.renew(1) is False
    assert await cut_off.campaign() is None


async def test_its_renewals_keep_the_twin_from_electing_another(elections: InRedis) -> None:
    one = elections.candidate("one")
    twin = InDatabase(elections.db, key=elections.key)
    await one.campaign()
    await twin.lapse()
    await one.renew(1)
    assert await twin.candidate("two").campaign() is None
    assert await one.renew(1) is True


async def test_it_frees_the_key_when_the_store_gives_no_term(elections: InRedis, no_store: Database) -> None:
    """Somebody who reaches the store should lead."""
    cut_off = InRedis(no_store, elections.link, key=elections.key).candidate("cut-off")
    with pytest.raises(Unavailable):
        await cut_off.campaign()
    assert await elections.candidate("whole").campaign() == 1


async def test_it_keeps_no_key_alive_while_the_store_is_away(elections: InRedis, no_store: Database) -> None:
    await elections.candidate("one").campaign()
    await elections.link.call("PEXPIRE", elections.key, 5000)
    with pytest.raises(Unavailable):
        await InRedis(no_store, elections.link, key=elections.key).candidate("one").renew(1)
    assert await elections.link.call("PTTL", elections.key) <= 5000


async def test_it_says_that_redis_is_down_and_leaves_the_row_to_its_twin(db: Database) -> None:
    link = RedisLink("redis://127.0.0.1:1/0")
    try:
        down = InRedis(db, link)
        twin = InDatabase(db, key=down.key).candidate("one")
        assert await twin.campaign() == 1
        one = down.candidate("one")
        for ask in (one.campaign, lambda: one.renew(1), one.leader):
            with pytest.raises(RoadDown):
                await ask()
        assert await twin.renew(1) is True
        with pytest.raises(RoadDown):
            await one.resign(1)
        assert (await row(db, down.key)).holder is None
    finally:
        await link.close()


async def test_it_takes_a_key_that_has_no_end_for_no_lease(elections: InRedis) -> None:
    """Somebody set it by hand: nobody would ever lead again."""
    await elections.link.call("SET", elections.key, "by hand")
    one = elections.candidate("one")
    leader = await the_leader(one)
    assert (leader.holder, leader.term, leader.left.total_seconds()) == ("by hand", 0, 0)
    assert await one.campaign() == 1
    assert await elections.candidate("two").campaign() is None
