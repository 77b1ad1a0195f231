"""What every keeper of the leader's lease promises, on Redis and on both databases."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from noonday.domain.errors import NotLeader
from noonday.store import leadership as terms
from noonday.store.notices import INSTANCES
from tests.leadership.candidates import TTL, Elections, row, the_leader


async def test_it_elects_the_first_who_asks_and_nobody_else_while_the_lease_lives(
    elections: Elections,
) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    assert await one.leader() is None
    assert await one.campaign() == 1
    assert await two.campaign() is None
    leader = await the_leader(two)
    assert (leader.holder, leader.term) == ("one", 1)
    assert TTL * 0.9 < leader.left <= TTL


async def test_it_elects_one_of_many_who_ask_at_once(elections: Elections) -> None:
    crowd = [elections.candidate(f"candidate-{number}") for number in range(8)]
    answers = await asyncio.gather(*(one.campaign() for one in crowd))
    assert [term for term in answers if term is not None] == [1]


async def test_it_raises_the_term_with_every_election(elections: Elections) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    assert await one.campaign() == 1
    await elections.lapse()
    assert await two.campaign() == 2
    await elections.lapse()
    assert await one.campaign() == 3


async def test_it_gives_a_new_term_to_a_holder_who_campaigns_again(elections: Elections) -> None:
    """A process that was restarted under its own name does not wait for the lease of the former one."""
    before, after = elections.candidate("one"), elections.candidate("one")
    assert await before.campaign() == 1
    assert await after.campaign() == 2
    assert await before.renew(1) is False


async def test_it_loses_leadership_when_the_term_of_the_same_leader_id_is_replaced(
    elections: Elections,
) -> None:
    one = elections.candidate("one")
    assert await one.campaign() == 1
    assert await elections.candidate("one").campaign() == 2
    with pytest.raises(NotLeader):
        await elections.db.write(partial(terms.check, name=elections.key, holder="one", term=1, patience=TTL))
    await elections.db.write(partial(terms.check, name=elections.key, holder="one", term=2, patience=TTL))


async def test_it_renews_the_lease_and_its_twin(elections: Elections) -> None:
    one = elections.candidate("one")
    assert await one.campaign() == 1
    await elections.lapse()
    assert await one.renew(1) is True
    assert (await the_leader(one)).left > TTL * 0.9
    assert (await row(elections.db, elections.key)).left > TTL * 0.9


async def test_it_refuses_to_renew_a_term_that_another_has_replaced(elections: Elections) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    await elections.lapse()
    assert await two.campaign() == 2
    assert await one.renew(1) is False
    leader = await the_leader(one)
    assert (leader.holder, leader.term) == ("two", 2)


async def test_it_hands_over_at_once_and_tells_the_others(elections: Elections) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    told = elections.db.subscribe(INSTANCES)
    await one.resign(1)
    async with asyncio.timeout(5):
        await told.wait()
    assert await two.leader() is None
    assert await two.campaign() == 2


async def test_it_takes_nothing_from_others_when_an_old_term_resigns(elections: Elections) -> None:
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    await elections.lapse()
    await two.campaign()
    told = elections.db.subscribe(INSTANCES)
    await one.resign(1)
    leader = await the_leader(two)
    assert (leader.holder, leader.term) == ("two", 2)
    assert not told.is_set()


async def test_it_fences_everybody_but_the_leader_of_the_term(elections: Elections) -> None:
    def check(holder: str, term: int) -> partial[None]:
        return partial(terms.check, name=elections.key, holder=holder, term=term, patience=TTL)

    with pytest.raises(NotLeader):  # before the first election
        await elections.db.write(check("one", 0))
    one = elections.candidate("one")
    await one.campaign()
    await elections.db.write(check("one", 1))
    for holder, term in [("one", 0), ("one", 2), ("two", 1)]:
        with pytest.raises(NotLeader):
            await elections.db.write(check(holder, term))
    await one.resign(1)
    with pytest.raises(NotLeader):
        await elections.db.write(check("one", 1))
