"""Where a listener goes on: after a break, when it is slow, and when numbers come out of order."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest
from fastapi import FastAPI
from sqlalchemy import Connection, text

from noonday.api import event_stream
from noonday.api import events as hub_module
from noonday.api.services import ApiServices
from noonday.store import events
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.api.listener import PATIENCE, listening
from tests.api.telling import (
    constant,
    kinds,
    news,
    past_a_gap,
    services_on,
    small_app,
    tell,
    told,
    until,
    waits,
)


@pytest.fixture
def app(db: Database, clock: StillClock) -> FastAPI:
    return small_app(services_on(db, clock))


@pytest.fixture
def sqlite_app(sqlite_db: Database, clock: StillClock) -> FastAPI:
    return small_app(services_on(sqlite_db, clock))


class TestGoingOn:
    async def test_a_listener_goes_on_behind_the_last_it_heard(self, app: FastAPI, db: Database) -> None:
        await told(db, 5)
        async with listening(app, {"Last-Event-ID": "3"}) as heard:
            assert [one.id for one in await heard.events(2)] == ["4", "5"]
            await tell(db, news("job.paused"))
            assert (await heard.event()).id == "6"

    async def test_on_another_instance_too(self, services: ApiServices, db: Database) -> None:
        one, two = small_app(services), small_app(services)
        async with listening(one) as heard:
            await told(db, 2)
            last = (await heard.events(2))[-1].id
        await tell(db, news("job.paused"))
        async with listening(two, {"Last-Event-ID": last}) as heard:
            assert (await heard.event()).event == "job.paused"

    async def test_what_another_process_commits_is_heard_by_its_notice(
        self, app: FastAPI, db: Database
    ) -> None:
        other = Database(db.url.render_as_string(hide_password=False))
        ears = asyncio.create_task(db.listen())
        try:
            with constant(hub_module, "_SAFETY", timedelta(minutes=5)):
                async with listening(app) as heard:
                    await tell(db, news("job.paused"))
                    assert (await heard.event()).event == "job.paused"
                    await tell(other, news("job.resumed"))
                    assert (await heard.event()).event == "job.resumed"
        finally:
            ears.cancel()
            await asyncio.gather(ears, return_exceptions=True)
            other.close_now()

    async def test_without_a_number_it_begins_now(self, app: FastAPI, db: Database) -> None:
        await told(db, 3)
        async with listening(app) as heard:
            assert (await heard.block()).id == "3"
            await tell(db, news("job.paused"))
            assert (await heard.event()).id == "4"

    async def test_the_header_wins_over_the_address(self, sqlite_app: FastAPI, sqlite_db: Database) -> None:
        await told(sqlite_db, 5)
        async with listening(sqlite_app, {"Last-Event-ID": "4"}, last_event_id="1") as heard:
            assert (await heard.event()).id == "5"
        async with listening(sqlite_app, last_event_id="1") as heard:
            assert (await heard.event()).id == "2"

    async def test_a_long_way_back_is_read_in_pages(self, app: FastAPI, db: Database) -> None:
        with constant(hub_module, "_PAGE", 10):
            await told(db, 35)
            async with listening(app, {"Last-Event-ID": "0"}) as heard:
                assert [int(one.id) for one in await heard.events(35)] == list(range(1, 36))

    @pytest.mark.parametrize("last", ["2", "99"])
    async def test_who_missed_too_much_is_told_to_read_anew_and_goes_on(
        self, app: FastAPI, db: Database, last: str
    ) -> None:
        await told(db, 10)
        await db.write(lambda conn: events.prune(conn, keep=5))
        async with listening(app, {"Last-Event-ID": last}) as heard:
            missed = await heard.event()
            assert (missed.event, missed.id, missed.data["type"]) == ("resync", "10", "resync")
            await tell(db, news("job.paused"))
            assert (await heard.event()).event == "job.paused"

    async def test_the_oldest_that_is_kept_is_not_too_old(self, app: FastAPI, db: Database) -> None:
        await told(db, 10)
        await db.write(lambda conn: events.prune(conn, keep=5))
        async with listening(app, {"Last-Event-ID": "5"}) as heard:
            assert (await heard.event()).id == "6"

    async def test_a_sign_of_life_carries_what_was_passed_over(
        self, sqlite_app: FastAPI, sqlite_db: Database
    ) -> None:
        with constant(event_stream.EventStream.__init__, "__kwdefaults__", {"every": 0.05}):
            async with listening(sqlite_app, topics="breakers") as heard:
                await told(sqlite_db, 3)
                while (beat := await heard.block()).id != "3":
                    pass
                assert beat.comment


class TestSlowListeners:
    async def test_who_does_not_take_what_comes_gets_it_from_the_table(
        self, app: FastAPI, db: Database
    ) -> None:
        with constant(hub_module, "_WAITING", 5):
            async with listening(app) as slow, listening(app) as quick:
                slow.held.clear()
                for _ in range(4):
                    await told(db, 5)
                    await quick.events(5)
                slow.held.set()
                assert [int(one.id) for one in await slow.events(20)] == list(range(1, 21))

    async def test_and_is_told_when_it_is_gone_from_there(self, app: FastAPI, db: Database) -> None:
        with constant(hub_module, "_WAITING", 5):
            async with listening(app) as slow, listening(app) as quick:
                slow.held.clear()
                for _ in range(4):
                    await told(db, 5)
                    await quick.events(5)
                await db.write(lambda conn: events.prune(conn, keep=3))
                slow.held.set()
                found = await slow.events(1)
                while found[-1].event != "resync":
                    found.append(await slow.event())
                await tell(db, news("job.paused"))
                assert (await slow.event()).event == "job.paused"

    async def test_a_reader_that_was_overtaken_by_the_pruning_says_so(
        self, app: FastAPI, db: Database
    ) -> None:
        def burst(conn: Connection) -> None:
            events.append(conn, [news(n=n) for n in range(20)])
            events.prune(conn, keep=2)

        async with listening(app) as heard:
            await told(db, 1)
            await heard.event()
            await db.write(burst)
            assert (await heard.event()).event == "resync"


class TestNumbersOutOfOrder:
    async def test_what_is_committed_later_is_waited_for(
        self, postgres_db: Database, clock: StillClock
    ) -> None:
        app = small_app(services_on(postgres_db, clock))
        async with listening(app) as heard:
            first_in = asyncio.Event()
            go_on = asyncio.Event()
            loop = asyncio.get_running_loop()

            def slowly(conn: Connection) -> None:
                events.append(conn, [news("job.paused")])
                conn.execute(text("SELECT 1"))  # whoever waits for this has its number
                loop.call_soon_threadsafe(first_in.set)
                asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(PATIENCE)

            slow = asyncio.create_task(postgres_db.write(slowly))
            await first_in.wait()
            await tell(postgres_db, news("job.resumed"))
            await until(lambda: waits(app))
            assert (await heard.block()).retry
            assert heard.nothing_waits()
            go_on.set()
            await slow
            assert kinds(await heard.events(2)) == ["job.paused", "job.resumed"]

    async def test_what_never_comes_is_given_up_and_what_comes_late_sets_nobody_back(
        self, postgres_db: Database, clock: StillClock
    ) -> None:
        app = small_app(services_on(postgres_db, clock))
        async with listening(app) as heard:
            await postgres_db.write(lambda conn: conn.execute(text("SELECT nextval('events_seq_seq')")))
            await tell(postgres_db, news("job.resumed"))
            await past_a_gap(app, clock)
            second = await heard.event()
            assert (second.id, second.event) == ("2", "job.resumed")
            insert = "INSERT INTO events (seq, at, kind, payload) VALUES (1, now(), 'job.paused', '{}')"
            await postgres_db.write(lambda conn: conn.execute(text(insert)))
            await tell(postgres_db, news("job.updated"))
            late, third = await heard.events(2)
            assert (late.event, late.id, late.data["id"]) == ("job.paused", "", "1")
            assert third.id == "3"
