"""Deliveries: taken once, kept with what they started, listed newest first, forgotten in small steps."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

from noonday.store import deliveries
from noonday.store.database import Database
from noonday.store.deliveries import Delivery
from tests.factories import NOON

STARTED = {"job_id": "j", "job_name": "crawl", "execution_id": "e", "status": "queued"}


def a_delivery(name: str, minutes: int = 0) -> Delivery:
    return Delivery(id=name, path=f"/{name}", received_at=NOON + timedelta(minutes=minutes))


async def test_a_delivery_is_taken_once(db: Database) -> None:
    assert await db.write(lambda conn: deliveries.take(conn, a_delivery("odd \"\\{}' name")))
    assert not await db.write(lambda conn: deliveries.take(conn, a_delivery("odd \"\\{}' name", 5)))
    found = await db.read(lambda conn: deliveries.get(conn, "odd \"\\{}' name"))
    assert found == a_delivery("odd \"\\{}' name")
    assert await db.read(lambda conn: deliveries.get(conn, "other")) is None


async def test_it_keeps_what_was_started(db: Database) -> None:
    await db.write(lambda conn: deliveries.take(conn, a_delivery("a")))
    await db.write(lambda conn: deliveries.started(conn, "a", [STARTED]))
    found = await db.read(lambda conn: deliveries.get(conn, "a"))
    assert found is not None
    assert found.started == (STARTED,)


async def test_old_ones_are_forgotten_in_small_steps(db: Database) -> None:
    for minutes in range(5):
        await db.write(partial(deliveries.take, delivery=a_delivery(f"d{minutes}", minutes)))
    before = NOON + timedelta(minutes=3)
    assert await db.write(lambda conn: deliveries.prune(conn, before, limit=2)) == 2
    assert await db.write(lambda conn: deliveries.prune(conn, before)) == 1
    assert await db.write(lambda conn: deliveries.prune(conn, before)) == 0
    page = await db.read(lambda conn: deliveries.page(conn, 10, 0))
    assert [found.id for found in page.items] == ["d4", "d3"]
    assert page.total == 2
