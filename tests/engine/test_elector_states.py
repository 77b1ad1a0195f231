"""The elector: when it leads, for how long it trusts, what it does when nobody answers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
import structlog

from noonday.domain.errors import NotLeader, Unavailable
from noonday.engine.elector import Elector
from noonday.store.database import Database
from noonday.testing import ManualClock
from tests.engine.electing import REDIS_AWAY, STORE_AWAY, TTL, Campaigns, Told, an_elector

TRUSTED = TTL * 0.9


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def keeper() -> Told:
    return Told("database")


@pytest.fixture
async def elector(sqlite_db: Database, clock: ManualClock, keeper: Told) -> Elector:
    keeper.elects = [1]
    return an_elector(sqlite_db, clock, keeper)


async def test_it_leads_alone_where_there_is_nothing_to_be_elected_to(
    sqlite_db: Database, clock: ManualClock
) -> None:
    alone = an_elector(sqlite_db, clock)
    assert alone.leading
    assert alone.term == 0
    await sqlite_db.write(alone.fence)
    await alone.wait()
    assert await alone.run_once() is None
    await alone.resign()
    assert alone.leading


async def test_it_campaigns_at_once_and_renews_at_a_third(elector: Elector, keeper: Told) -> None:
    assert not elector.leading
    assert await elector.run_once() == TTL / 3
    assert elector.leading
    assert elector.term == 1
    assert keeper.asked == ["campaign"]


async def test_it_lets_nobody_plan_until_it_leads(elector: Elector, keeper: Told) -> None:
    keeper.elects = [None, 4]
    waiting = asyncio.create_task(elector.wait())
    await elector.run_once()
    await asyncio.sleep(0)
    assert not waiting.done()
    await elector.run_once()
    async with asyncio.timeout(5):
        await waiting
    assert elector.term == 4


async def test_it_renews_when_it_is_time_and_not_when_it_is_woken(
    elector: Elector, keeper: Told, clock: ManualClock
) -> None:
    await elector.run_once()
    clock.advance(seconds=4)
    assert await elector.run_once() == TTL / 3 - timedelta(seconds=4)
    clock.advance(seconds=6)
    assert await elector.run_once() == TTL / 3
    assert keeper.asked == ["campaign", "renew 1"]


async def test_its_trust_ends_by_itself_whatever_the_renewal_does(
    elector: Elector, clock: ManualClock, sqlite_db: Database
) -> None:
    await elector.run_once()
    clock.advance(seconds=TRUSTED.total_seconds() - 0.001)
    assert elector.leading
    clock.advance(seconds=0.001)
    assert not elector.leading
    assert elector.term == 0
    with pytest.raises(NotLeader):
        await sqlite_db.write(elector.fence)
    waiting = asyncio.create_task(elector.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    await elector.run_once()  # nobody else was elected: the term goes on
    async with asyncio.timeout(5):
        await waiting
    assert elector.term == 1


async def test_it_goes_by_the_monotonic_clock_alone(elector: Elector, clock: ManualClock) -> None:
    await elector.run_once()
    clock.step(hours=2)
    assert elector.leading
    clock.step(hours=-5)
    clock.advance(seconds=TTL.total_seconds())
    assert not elector.leading


async def test_slow_successful_reelect_does_not_extend_trust_window(
    elector: Elector, keeper: Told, clock: ManualClock
) -> None:
    await elector.run_once()
    clock.advance(seconds=10)
    keeper.meanwhile = lambda: clock.advance(seconds=TTL.total_seconds())
    assert await elector.run_once() == timedelta(0), "it asks again at once"
    assert not elector.leading

    keeper.meanwhile = lambda: clock.advance(seconds=20)
    assert await elector.run_once() == timedelta(0)
    assert elector.leading
    clock.advance(seconds=TRUSTED.total_seconds() - 20)
    assert not elector.leading, "the twenty seconds of the answer are part of the trust"


async def test_a_slow_election_is_worth_no_trust_until_it_is_renewed(
    elector: Elector, keeper: Told, clock: ManualClock
) -> None:
    keeper.meanwhile = lambda: clock.advance(seconds=TTL.total_seconds())
    assert await elector.run_once() == timedelta(0)
    assert not elector.leading
    keeper.meanwhile = lambda: None
    await elector.run_once()
    assert elector.leading
    assert keeper.asked == ["campaign", "renew 1"]


async def test_it_keeps_leading_through_an_outage_shorter_than_its_trust(
    elector: Elector, keeper: Told, clock: ManualClock
) -> None:
    await elector.run_once()
    keeper.keeps = [STORE_AWAY]
    for _ in range(2):
        clock.advance(seconds=10)
        with pytest.raises(Unavailable):
            await elector.run_once()
        assert elector.leading
    keeper.keeps = [True]
    await elector.run_once()
    clock.advance(seconds=20)
    assert elector.term == 1


async def test_resigns_current_term_after_reelect_errors_exhaust_trust(
    elector: Elector, keeper: Told, clock: ManualClock
) -> None:
    await elector.run_once()
    keeper.keeps = [STORE_AWAY]
    clock.advance(seconds=TRUSTED.total_seconds())
    with structlog.testing.capture_logs() as lines, pytest.raises(Unavailable):
        await elector.run_once()
    assert not elector.leading
    assert keeper.asked[1:] == ["renew 1", "resign 1"]
    assert [line["action"] for line in lines] == ["leader.end"]
    assert "the store is away" in lines[0]["why"]

    keeper.elects = [2]
    await elector.run_once()
    assert elector.term == 2


async def test_it_campaigns_at_once_when_a_renewal_says_that_it_is_over(
    elector: Elector, keeper: Told, clock: ManualClock
) -> None:
    await elector.run_once()
    keeper.keeps, keeper.elects = [False], [None]
    clock.advance(seconds=10)
    with structlog.testing.capture_logs() as lines:
        await elector.run_once()
    assert not elector.leading
    assert keeper.asked == ["campaign", "renew 1", "campaign"]
    assert [(line["action"], line["term"], line["why"]) for line in lines] == [
        ("leader.end", 1, "another instance was elected")
    ]


async def test_it_says_once_that_it_leads_and_how_often_it_tried(
    sqlite_db: Database, clock: ManualClock, keeper: Told
) -> None:
    campaigns = Campaigns()
    elector = an_elector(sqlite_db, clock, keeper, telemetry=campaigns)
    keeper.elects = [None, None, 7]
    with structlog.testing.capture_logs() as lines:
        for _ in range(6):
            await elector.run_once()
            clock.advance(seconds=10)
    assert [(line["action"], line["term"]) for line in lines] == [("leader.begin", 7)]
    assert campaigns.count == 3


async def test_it_campaigns_when_the_present_lease_would_end(
    sqlite_db: Database, clock: ManualClock, keeper: Told
) -> None:
    wishes = set()
    for number in range(20):
        elector = an_elector(sqlite_db, clock, keeper, name=f"instance-{number}")
        keeper.left = timedelta(seconds=3)
        wish = await elector.run_once()
        assert isinstance(wish, timedelta)
        assert timedelta(seconds=3) <= wish <= timedelta(seconds=3.2)
        wishes.add(wish)
        keeper.left = TTL
        later = await elector.run_once()
        assert isinstance(later, timedelta)
        assert TTL / 3 * 0.9 <= later <= TTL / 3
    assert len(wishes) == 20, "not all of them at once"


async def test_no_request_keeps_it_waiting_for_ever(sqlite_db: Database, clock: ManualClock) -> None:
    class Hanging(Told):
        async def campaign(self) -> int | None:
            await asyncio.Event().wait()
            return None

    elector = an_elector(sqlite_db, clock, Hanging("redis", timedelta(seconds=1)))
    async with asyncio.timeout(10):
        with pytest.raises(TimeoutError):
            await elector.run_once()


async def test_it_hides_no_mistake_behind_an_outage(elector: Elector, keeper: Told) -> None:
    keeper.elects = [ValueError("a mistake")]
    with pytest.raises(ValueError, match="a mistake"):
        await elector.run_once()


class TestTwoKeepers:
    """Redis decides where it answers, the database where it does not."""

    @pytest.fixture
    def redis(self) -> Told:
        return Told("redis")

    @pytest.fixture
    async def elector(self, sqlite_db: Database, clock: ManualClock, redis: Told, keeper: Told) -> Elector:
        return an_elector(sqlite_db, clock, redis, keeper)

    async def test_the_first_that_answers_decides(self, elector: Elector, redis: Told, keeper: Told) -> None:
        redis.elects, keeper.elects = [None, 1], [9]
        await elector.run_once()
        assert not elector.leading
        await elector.run_once()
        assert elector.term == 1
        assert keeper.asked == []

    async def test_at_its_start_it_does_not_wait_for_a_redis_that_is_away(
        self, elector: Elector, redis: Told, keeper: Told
    ) -> None:
        redis.elects, keeper.elects = [REDIS_AWAY], [1]
        await elector.run_once()
        assert elector.term == 1

    async def test_it_asks_the_database_when_redis_has_been_silent_for_a_third(
        self, elector: Elector, redis: Told, keeper: Told, clock: ManualClock
    ) -> None:
        keeper.elects = [1]
        await elector.run_once()
        redis.elects = [REDIS_AWAY]
        for _ in range(3):
            clock.advance(seconds=3)
            assert await elector.run_once() == TTL / 9
            assert not elector.leading
        clock.advance(seconds=3)
        await elector.run_once()
        assert elector.term == 1

    async def test_a_leader_goes_on_by_the_database_and_back_without_a_new_term(
        self, elector: Elector, redis: Told, keeper: Told, clock: ManualClock
    ) -> None:
        redis.elects = [3]
        await elector.run_once()
        redis.keeps = [REDIS_AWAY]
        clock.advance(seconds=10)
        with structlog.testing.capture_logs() as lines:
            assert await elector.run_once() == TTL / 9, "it looks more often whether Redis is back"
            redis.keeps = [True]
            clock.advance(seconds=TTL.total_seconds() / 9)
            assert await elector.run_once() == TTL / 3
        assert elector.term == 3
        assert [(line["action"], line["lease"]) for line in lines] == [
            ("leader.moved", "database"),
            ("leader.moved", "redis"),
        ]

    async def test_a_key_that_is_somebody_elses_ends_no_term_that_the_store_still_knows(
        self, elector: Elector, redis: Told, keeper: Told, clock: ManualClock
    ) -> None:
        """Redis came back with old data: its key names one that is long gone."""
        redis.elects = [3]
        await elector.run_once()
        redis.keeps = [False]
        clock.advance(seconds=10)
        await elector.run_once()
        assert elector.term == 3
        keeper.keeps, redis.elects = [False], [None]
        clock.advance(seconds=10)
        await elector.run_once()
        assert not elector.leading

    async def test_with_both_away_it_leads_until_its_trust_ends(
        self, elector: Elector, redis: Told, keeper: Told, clock: ManualClock
    ) -> None:
        redis.elects = [3]
        await elector.run_once()
        redis.keeps, keeper.keeps = [REDIS_AWAY], [STORE_AWAY]
        clock.advance(seconds=20)
        with pytest.raises(Unavailable, match="the store"):
            await elector.run_once()
        assert elector.leading
        clock.advance(seconds=7)
        assert not elector.leading

    async def test_at_shutdown_it_gives_up_both(self, elector: Elector, redis: Told, keeper: Told) -> None:
        redis.elects = [3]
        await elector.run_once()
        redis.keeps = [REDIS_AWAY]
        await elector.resign()
        assert not elector.leading
        assert redis.asked[-1] == keeper.asked[-1] == "resign 3"
        assert await elector.run_once() is None, "and campaigns no more"
        assert redis.asked.count("campaign") == 1

    async def test_a_renewal_under_way_takes_back_nothing_that_was_given_up(
        self, elector: Elector, redis: Told, clock: ManualClock
    ) -> None:
        redis.elects = [3]
        await elector.run_once()
        clock.advance(seconds=10)
        under_way, go_on = asyncio.Event(), asyncio.Event()
        renew = redis.renew

        async def slowly(term: int) -> bool:
            under_way.set()
            await go_on.wait()
            return await renew(term)

        redis.renew = slowly  # type: ignore[method-assign]
        renewal = asyncio.create_task(elector.run_once())
        await under_way.wait()
        resigning = asyncio.create_task(elector.resign())
        await asyncio.sleep(0)
        go_on.set()
        async with asyncio.timeout(5):
            await renewal
            await resigning
        assert redis.asked[-2:] == ["renew 3", "resign 3"]
        assert not elector.leading
