"""`/api/events`: what is heard, by whom, and that nothing is left of one who vanished."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy import Connection

from noonday.api import event_stream
from noonday.api.app import create_app
from noonday.api.events import Hub
from noonday.api.services import ApiServices
from noonday.domain.access import Caller, Role
from noonday.domain.target import ServiceTarget
from noonday.store import events, jobs
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, client_of
from tests.api.listener import PATIENCE, listening
from tests.api.telling import (
    constant,
    hub_of,
    kinds,
    news,
    past_a_gap,
    services_on,
    small_app,
    tell,
    told,
    until,
)
from tests.factories import a_job


@pytest.fixture
def app(db: Database, clock: StillClock) -> FastAPI:
    return small_app(services_on(db, clock))


@pytest.fixture
def sqlite_app(sqlite_db: Database, clock: StillClock) -> FastAPI:
    return small_app(services_on(sqlite_db, clock))


@pytest.fixture
def sqlite_services(sqlite_db: Database, clock: StillClock) -> ApiServices:
    return services_on(sqlite_db, clock)


class TestWhatIsHeard:
    async def test_a_change_is_heard_as_it_is_made(
        self, services: ApiServices, db: Database, clock: StillClock
    ) -> None:
        app = create_app(services)
        async with client_of(services) as client, listening(app) as heard:
            greeting = await heard.block()
            assert (greeting.id, greeting.retry) == ("0", "3000")
            job = await Api(client, db, clock).make(name="nightly")
            event = await heard.event()
            assert (event.id, event.event) == ("1", "job.created")
            assert event.data == {
                "id": "1",
                "type": "noonday.job.created",
                "time": "2027-01-01T12:00:00Z",
                "subject": f"jobs/{job['id']}",
                "data": {
                    "job_id": job["id"],
                    "job_name": "nightly",
                    "action": "create",
                    "by": "anonymous",
                    "revision": 1,
                },
            }
            await client.put(f"/api/v2/jobs/{job['id']}", json={"description": "more", "priority": 1})
            assert (await heard.event()).data["data"]["changed"] == ["description", "lane"]
            started = await client.post(f"/api/v2/jobs/{job['id']}/force-run")
            forced = await heard.event()
            assert forced.event == "job.forced"
            assert forced.data["data"]["execution_id"] == started.json()["execution_id"]
            await client.delete(f"/api/v2/jobs/{job['id']}")
            gone = await heard.event()
            assert (gone.event, gone.data["data"]["job_name"]) == ("job.deleted", "nightly")

    async def test_a_change_that_is_rolled_back_is_not_heard(
        self, app: FastAPI, db: Database, clock: StillClock
    ) -> None:
        def fail(conn: Connection) -> None:
            events.append(conn, [news("job.created")])
            raise ValueError("no")

        async with listening(app) as heard:
            with pytest.raises(ValueError, match="no"):
                await db.write(fail)
            await tell(db, news("job.paused"))
            if db.dialect != "sqlite":  # which gives the number to the next one
                await past_a_gap(app, clock)
            assert (await heard.event()).event == "job.paused"

    async def test_it_is_a_stream_that_nobody_packs_or_keeps(self, sqlite_services: ApiServices) -> None:
        async with listening(create_app(sqlite_services)) as heard:
            assert heard.status == 200
            assert heard.headers["content-type"].startswith("text/event-stream")
            assert heard.headers["cache-control"] == "no-store"
            assert heard.headers["x-accel-buffering"] == "no"
            assert not heard.headers.keys() & {"content-encoding", "content-length"}

    async def test_topics_choose(self, sqlite_app: FastAPI, sqlite_db: Database) -> None:
        async with listening(sqlite_app, topics="jobs, breakers") as heard:
            await tell(sqlite_db, *map(news, ("execution.ended", "job.paused", "leader.elected")))
            await tell(sqlite_db, *map(news, ("executions.many", "what.ever", "breaker.opened")))
            assert kinds(await heard.events(2)) == ["job.paused", "breaker.opened"]

    async def test_one_job_chooses_and_what_was_counted_together_is_for_all(
        self, app: FastAPI, db: Database
    ) -> None:
        mine, other = a_job(name="mine"), a_job()
        await db.write(lambda conn: [jobs.add(conn, job) for job in (mine, other)])
        async with listening(app, job="mine") as heard:
            await tell(db, news(job=other), news(), news("execution.ended", mine))
            await tell(db, news("executions.many", counts={"started": 7}))
            found = await heard.events(2)
            assert kinds(found) == ["execution.ended", "executions.many"]
            assert found[1].data["data"] == {"counts": {"started": 7}}

    async def test_it_ends_after_as_many_as_asked_for(self, sqlite_app: FastAPI, sqlite_db: Database) -> None:
        async with listening(sqlite_app, limit="2") as heard:
            await told(sqlite_db, 5)
            assert [one.id for one in await heard.events(2)] == ["1", "2"]
            await asyncio.wait_for(heard.over.wait(), PATIENCE)
            assert heard.nothing_waits()

    async def test_secrets_are_masked(self, sqlite_app: FastAPI, sqlite_db: Database) -> None:
        async with listening(sqlite_app) as heard:
            await tell(sqlite_db, news(error="https://ada:geheim@example.com/?token=geheim failed"))
            assert "geheim" not in str(await heard.event())

    async def test_a_line_break_stays_inside_its_event(
        self, sqlite_app: FastAPI, sqlite_db: Database
    ) -> None:
        sly = "one\n\nevent: job.deleted\ndata: {}\r\n\ud800"
        async with listening(sqlite_app) as heard:
            await tell(sqlite_db, news(error=sly), news("job.paused"))
            found = await heard.events(2)
            assert kinds(found) == ["execution.started", "job.paused"]
            assert found[0].data["data"]["error"].startswith("one\n\nevent:")


class TestWhoMayListen:
    def of(self, services: ApiServices, caller: Caller) -> FastAPI:
        async def identify(_: object) -> Caller:
            return caller

        return small_app(replace(services, identify=identify))

    async def test_a_service_hears_of_its_own_jobs_alone(self, services: ApiServices, db: Database) -> None:
        own = a_job(name="own", target=ServiceTarget(service="email", endpoint="/run"))
        other = a_job(name="other", target=ServiceTarget(service="billing", endpoint="/run"))
        nobodys = a_job(name="nobodys")
        await db.write(lambda conn: [jobs.add(conn, job) for job in (own, other, nobodys)])
        app = self.of(services, Caller(name="email", role=Role.SERVICE, service="email"))
        async with listening(app) as heard:
            await tell(db, news(job=other), news(job=nobodys), news("breaker.opened"))
            await tell(db, news("instance.started"), news("executions.many", counts={"started": 9}))
            await tell(db, news("execution.ended", own))
            many, mine = await heard.events(2)
            assert (many.event, many.data["data"]) == ("executions.many", {})
            assert mine.data["data"]["job_name"] == "own"
        async with listening(app, job="other") as heard:
            assert heard.status == 404

    async def test_the_stream_ends_when_the_key_is_revoked(self, sqlite_services: ApiServices) -> None:
        known = [Caller(name="ada", role=Role.VIEWER)]

        async def identify(_: object) -> Caller | None:
            return known[0] if known else None

        app = small_app(replace(sqlite_services, identify=identify))
        with constant(event_stream.EventStream.__init__, "__kwdefaults__", {"every": 0.05}):
            async with listening(app) as heard:
                await heard.block()
                assert (await heard.block()).comment
                known.clear()
                await asyncio.wait_for(heard.over.wait(), PATIENCE)

    async def test_what_is_no_question_is_refused(self, sqlite_app: FastAPI) -> None:
        queries: list[dict[str, Any]] = [
            {"topics": "jobs,keys"},
            {"last_event_id": "-1"},
            {"last_event_id": "9" * 19},
            {"limit": "0"},
            {"what": "ever"},
            {"topics": "x" * 201},
        ]
        for query in queries:
            async with listening(sqlite_app, **query) as heard:
                assert heard.status == 422, query

    async def test_a_header_that_is_no_number_is_refused(self, sqlite_app: FastAPI) -> None:
        async with listening(sqlite_app, {"Last-Event-ID": "abc"}) as heard:
            assert heard.status == 422

    async def test_an_unknown_job_is_not_found(self, sqlite_app: FastAPI) -> None:
        async with listening(sqlite_app, job="nowhere") as heard:
            assert heard.status == 404

    async def test_where_no_events_are_kept_it_says_what_to_set(self, sqlite_services: ApiServices) -> None:
        async with listening(small_app(replace(sqlite_services, events_kept=0))) as heard:
            assert heard.status == 503
            assert b"EVENTS_KEEP" in heard.body


class TestNothingIsLeft:
    async def test_a_listener_that_vanishes_leaves_nothing(self, app: FastAPI, db: Database) -> None:
        before = asyncio.all_tasks()
        hub = hub_of(app)
        for _ in range(20):
            async with listening(app, {"Last-Event-ID": "0"}) as one, listening(app) as two:
                assert len(hub) == 2
                await told(db, 3)
                await one.events(3)
                await two.events(3)
        assert len(hub) == 0
        await _settled(before)

    async def test_also_one_that_vanishes_while_it_is_sent_to(self, app: FastAPI, db: Database) -> None:
        before = asyncio.all_tasks()
        hub = hub_of(app)
        async with listening(app) as stuck:
            stuck.held.clear()
            await told(db, 3)
            stuck.gone.set()
            await until(lambda: not len(hub))
        await _settled(before)

    async def test_only_so_many_may_listen(self, sqlite_services: ApiServices, sqlite_db: Database) -> None:
        app = small_app(sqlite_services)
        app.state.services.events = Hub(sqlite_db, sqlite_services.clock, keep=10, most=2)
        async with listening(app), listening(app), listening(app) as third:
            assert third.status == 503
            assert third.headers["retry-after"]
        async with listening(app) as fourth:
            assert fourth.status == 200

    async def test_the_end_of_the_server_ends_every_stream(self, sqlite_app: FastAPI) -> None:
        before = asyncio.all_tasks()
        async with listening(sqlite_app) as one, listening(sqlite_app) as two:
            sqlite_app.state.services.close()
            for client in (one, two):
                await asyncio.wait_for(client.over.wait(), PATIENCE)
        async with listening(sqlite_app) as late:
            assert late.status == 503
        await _settled(before)


async def _settled(before: set[asyncio.Task[Any]]) -> None:
    await until(lambda: asyncio.all_tasks() <= before)
