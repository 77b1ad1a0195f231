"""A scrape has its figures, whatever the database is doing."""

from __future__ import annotations

import asyncio

import pytest

from noonday.clock import SystemClock
from noonday.domain.errors import Unavailable
from noonday.domain.job import Lane
from noonday.store.backlog import Backlog
from noonday.telemetry.metrics import Metrics
from noonday.telemetry.scraping import Scrape
from noonday.testing import ManualClock
from tests.telemetry.scraped import Scraped


class Store:
    """A look at the database as a test wants it: quick, failing, or as long as `slow` is not set."""

    def __init__(self) -> None:
        self.looks = 0
        self.down = False
        self.quick = asyncio.Event()
        self.quick.set()

    async def look(self) -> Backlog:
        self.looks += 1
        await self.quick.wait()
        if self.down:
            raise Unavailable("away")
        return Backlog(depths={Lane.HIGH: self.looks})


@pytest.fixture
def store() -> Store:
    return Store()


async def test_it_looks_at_the_database_now_and_then_however_many_scrape(store: Store) -> None:
    clock = ManualClock()
    scrape = Scrape(Metrics("crawler"), store.look, clock, every=5)
    await asyncio.gather(*(scrape() for _ in range(10)))
    clock.advance(seconds=4.9)
    assert Scraped(await scrape())("queue_depth", priority="high") == 1
    clock.advance(seconds=0.2)
    assert Scraped(await scrape())("queue_depth", priority="high") == 2
    assert store.looks == 2


async def test_a_failing_look_fails_no_scrape(store: Store) -> None:
    scrape = Scrape(Metrics("crawler"), store.look, ManualClock(), every=5)
    store.down = True
    scraped = Scraped(await scrape())
    assert (scraped("store_up"), scraped("queue_depth", priority="high")) == (0, None)
    assert scraped("workers_busy") == 0
    store.down = False
    assert Scraped(await scrape())("store_up") == 1, "nobody waits for the next turn when it is back"


async def test_a_slow_look_holds_up_no_scrape_and_serves_a_later_one(store: Store) -> None:
    clock = ManualClock()
    scrape = Scrape(Metrics("crawler"), store.look, clock, every=5, patience=0.05)
    await scrape()
    clock.advance(seconds=6)
    store.quick.clear()
    async with asyncio.timeout(10):
        scraped = Scraped(await scrape())
        assert (scraped("store_up"), scraped("queue_depth", priority="high")) == (1, 1), "still fresh enough"
        clock.advance(seconds=10)
        scraped = Scraped(await scrape())
        assert (scraped("store_up"), scraped("queue_depth", priority="high")) == (0, None)
        assert store.looks == 2, "one look at a time"
        store.quick.set()
        while Scraped(await scrape())("store_up") == 0:
            await asyncio.sleep(0)
    assert store.looks == 2


async def test_closing_ends_a_look_on_its_way(store: Store) -> None:
    scrape = Scrape(Metrics("crawler"), store.look, SystemClock(), patience=0.01)
    store.quick.clear()
    await scrape()
    before = asyncio.all_tasks()
    await scrape.aclose()
    assert len(asyncio.all_tasks()) == len(before) - 1
