"""The client against a real server: what was sent is there, what comes back is typed, a no is raised."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import assert_type

import pytest
from starlette.datastructures import Headers

from noonday.client import (
    NO_RETRIES,
    AsyncNoondayClient,
    Conflict,
    Invalid,
    NoondayClient,
    NotAllowed,
    NotFound,
    NotSignedIn,
    Outdated,
    Refused,
)
from noonday.client.answers import CommandBody, Execution, Job, JobPage, Rehearsed, SchedulerHealth, Started
from noonday.client.bodies import JobBody
from noonday.domain.access import Caller, Role
from noonday.domain.errors import NotAllowed as Refusal

HELLO: JobBody = {
    "name": "hello",
    "schedule_type": "interval",
    "interval_minutes": 10,
    "interval_type": "minutes",
    "target": {"type": "command", "argv": ["echo", "on the dot"]},
    "start_at": datetime(2027, 1, 4, 12, tzinfo=UTC),
    "calendar": {"excluded_dates": [date(2027, 12, 24)]},
}


def test_it_creates_reads_changes_and_deletes_a_job(client: NoondayClient) -> None:
    made = client.jobs.create(HELLO)
    assert isinstance(made, Job)
    assert (made.name, made.status, made.priority) == ("hello", "scheduled", 2)
    assert made.start_at == datetime(2027, 1, 4, 12, tzinfo=UTC)
    assert made.next_runs[1] - made.next_runs[0] == timedelta(minutes=10)
    assert isinstance(made.target, CommandBody)
    assert made.target.argv == ["echo", "on the dot"]
    assert made.calendar.excluded_dates == [date(2027, 12, 24)]

    assert client.jobs.read("hello") == made
    changed = client.jobs.change("hello", {"priority": 1}, if_match=f'"{made.revision}"')
    assert isinstance(changed, Job)
    assert changed.priority == 1
    with pytest.raises(Outdated) as late:
        client.jobs.change("hello", {"priority": 3}, if_match=f'"{made.revision}"')
    assert late.value.status == 412

    page = client.jobs.find(name="hel", limit=5)
    assert [job.name for job in page.jobs] == ["hello"]
    assert page.total == 1
    client.jobs.delete("hello")
    with pytest.raises(NotFound) as gone:
        client.jobs.read("hello")
    assert "hello" in gone.value.detail
    assert gone.value.request_id


def test_a_rehearsal_comes_back_as_what_it_is(client: NoondayClient) -> None:
    client.jobs.create(HELLO)
    found = client.jobs.change("hello", {"priority": 1}, dry_run=True)
    assert isinstance(found, Rehearsed)
    assert [(change.field, change.before, change.after) for change in found.changes] == [("priority", 2, 1)]
    job = client.jobs.read("hello")
    assert job.priority == 2


def test_it_runs_a_job_once_however_often_the_same_key_is_sent(client: NoondayClient) -> None:
    client.jobs.create(HELLO)
    first = client.jobs.force_run("hello", {"config": {"a": 1}}, idempotency_key="once")
    again = client.jobs.force_run("hello", {"config": {"a": 1}}, idempotency_key="once")
    assert isinstance(first, Started)
    assert again == first
    run = client.executions.read(first.execution_id)
    assert (run.cause, run.config, run.status) == ("manual", {"a": 1}, "queued")
    assert client.executions.find_of_job("hello").total == 1


def test_names_that_need_quoting_reach_their_job(client: NoondayClient) -> None:
    name = "50% off? #1 & more ünï"
    client.jobs.create({**HELLO, "name": name})
    assert client.jobs.read(name).name == name
    with pytest.raises(ValueError, match="cannot be part of an address"):
        client.jobs.read("..")


def test_it_names_each_wrong_value(client: NoondayClient) -> None:
    with pytest.raises(Invalid) as wrong:
        client.jobs.create({"name": "x", "cron_expression": "61 * * * *", "url": "https://example.com/"})
    assert wrong.value.status == 422
    assert [error["field"] for error in wrong.value.errors] == ["cron_expression"]
    assert wrong.value.type == "urn:noonday:problem:invalid"
    client.jobs.create(HELLO)
    with pytest.raises(Conflict):
        client.jobs.create(HELLO)


def test_it_reads_text_and_health(client: NoondayClient) -> None:
    assert isinstance(client.health.metrics(), str)
    assert client.health.live().status == "alive"
    health = client.health.scheduler()
    assert isinstance(health, SchedulerHealth)


def test_a_service_registers_its_job(client: NoondayClient) -> None:
    declared = client.registry.register(
        {
            "name": "weekly-digest",
            "cronExpression": "0 9 * * 1",
            "service": "email-service",
            "endpoint": "/api/jobs/weekly-digest",
            "config": {"maxUsers": 10},
        }
    )
    assert declared.job.name == "weekly-digest"
    assert client.registry.history("weekly-digest").pagination.total == 0


async def test_the_async_client_does_the_same(url: str) -> None:
    async with AsyncNoondayClient(url) as client:
        made = await client.jobs.create(HELLO)
        assert isinstance(made, Job)
        names = [f"job-{n}" for n in range(8)]
        await asyncio.gather(*(client.jobs.create({**HELLO, "name": name}) for name in names))
        page = await client.jobs.find(order="name", limit=200)
        assert [job.name for job in page.jobs] == ["hello", *names]
        with pytest.raises(NotFound):
            await client.jobs.pause("nobody")
        await client.jobs.delete("hello")
        assert (await client.jobs.find()).total == 8


def test_it_shows_its_token_or_key(serve: Callable[..., str]) -> None:
    callers = {
        "Bearer viewer-token": Caller(name="vera", role=Role.VIEWER),
        "admin-key": Caller(name="ada", role=Role.ADMIN),
    }

    async def identify(headers: Headers) -> Caller | None:
        shown = headers.get("authorization") or headers.get("x-api-key")
        if shown is not None and shown not in callers:
            raise Refusal("unknown")
        return callers[shown] if shown else None

    url = serve(identify=identify)
    with NoondayClient(url) as nobody, pytest.raises(NotSignedIn):
        nobody.jobs.find()
    with NoondayClient(url, token="viewer-token") as viewer:
        assert viewer.jobs.find().total == 0
        with pytest.raises(NotAllowed) as no:
            viewer.jobs.create(HELLO)
        assert "viewer" in no.value.detail
    with NoondayClient(url, key="admin-key") as admin:
        admin.jobs.create(HELLO)
    with pytest.raises(ValueError, match="not both"):
        NoondayClient(url, token="a", key="b")


def test_a_switched_off_version_is_an_error_not_an_answer(serve: Callable[..., str]) -> None:
    with NoondayClient(serve(v2_enabled=False), retries=NO_RETRIES) as client, pytest.raises(Refused) as off:
        client.health.scheduler()
    assert off.value.status == 503
    assert off.value.retry_after == 5


async def test_types_are_what_they_seem(client: NoondayClient, url: str) -> None:
    """Read by mypy: both clients are typed by one description."""
    assert_type(client.jobs.find(limit=1), JobPage)
    client.jobs.create(HELLO)
    assert_type(client.jobs.read("hello"), Job)
    assert_type(client.jobs.force_run("hello"), Execution | Started)
    async with AsyncNoondayClient(url) as other:
        assert_type(await other.jobs.find(limit=1), JobPage)
        assert_type(await other.jobs.delete("hello"), Rehearsed | None)
