"""An election waits for a planning transaction in progress, and none of the old term comes after it."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import Connection, update

from noonday.clock import SystemClock
from noonday.domain.errors import NotLeader, Unavailable
from noonday.store import leadership as terms
from noonday.store.database import Database
from noonday.store.tables import meta
from tests.leadership.candidates import TTL, InDatabase, lapse_row


class Planning:
    """A planning transaction that passes the fence and then stands still until it may go on."""

    def __init__(self, key: str, holder: str, term: int, patience: timedelta = TTL) -> None:
        self.inside = threading.Event()
        self.go_on = threading.Event()
        self._fence = partial(terms.check, name=key, holder=holder, term=term, patience=patience)
        self._tries = 0

    def __call__(self, conn: Connection) -> None:
        self._fence(conn)
        self._tries += 1
        if self._tries == 1:
            self.inside.set()
            assert self.go_on.wait(30)
        conn.execute(update(meta).values(value=meta.c.value))

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.inside.wait, 10)


async def test_an_election_waits_for_a_planning_transaction_in_progress(postgres_db: Database) -> None:
    elections = InDatabase(postgres_db)
    one, two = elections.candidate("one"), elections.candidate("two")
    await one.campaign()
    await elections.lapse()  # and nobody was elected yet
    planning = Planning(elections.key, "one", 1)
    transaction = asyncio.create_task(postgres_db.write(planning))
    await planning.has_begun()

    election = asyncio.create_task(two.campaign())
    assert not (await asyncio.wait([election], timeout=0.3))[0], "it did not wait"
    planning.go_on.set()
    async with asyncio.timeout(10):
        await transaction
        assert await election == 2
    with pytest.raises(NotLeader):
        await postgres_db.write(Planning(elections.key, "one", 1))


async def test_a_renewal_does_not_wait_for_a_planning_transaction_in_progress(postgres_db: Database) -> None:
    elections = InDatabase(postgres_db)
    one = elections.candidate("one")
    await one.campaign()
    planning = Planning(elections.key, "one", 1)
    transaction = asyncio.create_task(postgres_db.write(planning))
    await planning.has_begun()
    try:
        async with asyncio.timeout(5):
            assert await one.renew(1)
        assert not transaction.done()
    finally:
        planning.go_on.set()
    await transaction


async def test_a_planner_that_stands_still_holds_up_no_election_for_longer_than_the_lease(
    postgres_db: Database,
) -> None:
    """As SIGSTOP in the middle of a planning transaction, and SIGCONT long after."""
    elections = InDatabase(postgres_db)
    two = elections.candidate("two")
    await elections.candidate("one").campaign()
    planning = Planning(elections.key, "one", 1, patience=timedelta(milliseconds=300))
    transaction = asyncio.create_task(postgres_db.write(planning))
    await planning.has_begun()
    async with asyncio.timeout(10):
        await lapse_row(postgres_db, elections.key, elections.clock)  # waits for the end of the session
        assert await two.campaign() == 2
    planning.go_on.set()
    with pytest.raises((NotLeader, Unavailable)):
        await transaction


async def test_a_planner_that_finds_an_election_in_progress_waits_and_is_refused(
    postgres_db: Database,
) -> None:
    elections = InDatabase(postgres_db)
    await elections.candidate("one").campaign()
    await elections.lapse()
    inside, go_on = threading.Event(), threading.Event()
    two = elections.candidate("two")

    def elect(conn: Connection) -> None:
        assert terms.take_term(conn, two._me(), SystemClock().now()) == 2
        inside.set()
        assert go_on.wait(30)

    election = asyncio.create_task(postgres_db.write(elect))
    assert await asyncio.to_thread(inside.wait, 10)
    planning = Planning(elections.key, "one", 1)
    planning.go_on.set()
    transaction = asyncio.create_task(postgres_db.write(planning))
    assert not (await asyncio.wait([transaction], timeout=0.3))[0], "it did not wait"
    go_on.set()
    await election
    with pytest.raises(NotLeader):
        await transaction


async def test_it_counts_a_lease_on_the_clock_of_the_database(postgres_db: Database) -> None:
    """Whatever a candidate believes: one an hour ahead takes no lease that lives."""

    class Ahead(SystemClock):
        def now(self):  # type: ignore[no-untyped-def]
            return super().now() + timedelta(hours=1)

    elections = InDatabase(postgres_db)
    await elections.candidate("one").campaign()
    elections.clock = Ahead()
    ahead = elections.candidate("ahead")
    assert await ahead.campaign() is None
    found = await ahead.leader()
    assert found is not None
    assert found.left > TTL * 0.9
