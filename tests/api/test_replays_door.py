"""`Idempotency-Key` over HTTP: one effect, one answer, whatever is lost between the two."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from httpx2 import Response
from starlette.datastructures import Headers

from noonday.api.door import replays
from noonday.api.door.replays import remembers
from noonday.api.services import ApiServices
from noonday.domain.access import Caller, Role
from noonday.domain.errors import Unavailable
from noonday.domain.job import Job
from noonday.domain.outcome import Completed
from noonday.store.database import Database
from noonday.store.front_tables import replays as table
from tests.api.caller import Api, StillClock, client_of, token_of
from tests.api.until import eventually

BODY = {"name": "nightly", "url": "https://example.com/", "cron_expression": "0 3 * * *"}
RUN = "/api/v2/jobs/manual/force-run"


async def post(api: Api, path: str, key: str, body: Any = None, **headers: str) -> Response:
    return await api.call("POST", path, body, headers={"Idempotency-Key": key, **headers})


@asynccontextmanager
async def another(services: ApiServices, clock: StillClock, **changes: Any) -> AsyncIterator[Api]:
    """Another process on the same database."""
    async with client_of(replace(services, **changes), forgiving=True) as client:
        yield Api(client, services.db, clock)


async def test_it_answers_the_same_again_and_does_it_once(api: Api) -> None:
    first = await post(api, "/api/v2/jobs", "k-1", BODY)
    again = await post(api, "/api/v2/jobs", "k-1", BODY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.content == first.content
    for name in ("ETag", "Location", "Content-Type", "Content-Length"):
        assert again.headers[name] == first.headers[name]
    assert again.headers["X-Request-ID"] != first.headers["X-Request-ID"]
    assert (await api.get("/api/v2/jobs"))["total"] == 1


async def test_it_starts_one_run_for_one_key(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual", overlap="allow")
    runs = [(await post(api, RUN, key)).json()["execution_id"] for key in ("a", "a", "b", "a")]
    assert (runs[0] == runs[1] == runs[3], runs[0] == runs[2]) == (True, False)
    assert (await api.get("/api/v2/jobs/manual/executions"))["total"] == 2


async def test_it_starts_one_run_for_many_at_the_same_moment(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual", overlap="allow")
    answers = await asyncio.gather(*(post(api, RUN, "k-1") for _ in range(8)))
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert (await api.get("/api/v2/jobs/manual/executions"))["total"] == 1


async def test_it_sees_through_the_form_of_a_body(sqlite_api: Api) -> None:
    backwards = json.dumps(dict(reversed(BODY.items())), indent=2).encode()
    first = await post(sqlite_api, "/api/v2/jobs", "k-1", BODY)
    headers = {"Idempotency-Key": '"k-1"'}  # quoted, as the draft of the standard has it
    again = await sqlite_api.client.post("/api/v2/jobs", content=backwards, headers=headers)
    assert (again.status_code, again.content) == (201, first.content)


@pytest.mark.parametrize(
    ("path", "body"), [("/api/v2/jobs", {**BODY, "priority": 1}), ("/api/v2/jobs?x=1", BODY)], ids=str
)
async def test_it_refuses_another_request_under_the_same_key(api: Api, path: str, body: Any) -> None:
    await post(api, "/api/v2/jobs", "k-1", BODY)
    refused = await post(api, path, "k-1", body)
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:noonday:problem:key-reused")
    assert (await post(api, "/api/v2/jobs", "k-1", BODY)).status_code == 201


async def test_it_keeps_callers_and_addresses_apart(services: ApiServices, clock: StillClock) -> None:
    async def by_header(headers: Headers) -> Caller | None:
        return Caller(name=headers["x-who"], role=Role(headers.get("x-role", "operator")))

    async with another(services, clock, identify=by_header) as api:
        ada = {"X-Who": "ada"}
        await api.call("POST", "/api/v2/jobs", {**BODY, "name": "manual", "overlap": "allow"}, headers=ada)
        calls = [
            await post(api, RUN, "k-1", **ada),
            await post(api, RUN, "k-1", **ada, **{"X-Role": "admin"}),
            await post(api, RUN, "k-1", **{"X-Who": "bob"}),
            await post(api, "/api/v2/jobs/manual/pause", "k-1", **ada),
        ]
        refused = await post(api, RUN, "k-1", **ada, **{"X-Role": "viewer"})
    assert not [call for call in calls if "Idempotency-Replayed" in call.headers]
    assert len({call.json().get("execution_id") for call in calls}) == 4
    assert refused.status_code == 403


async def test_it_remembers_a_refusal_too(api: Api) -> None:
    await api.make(name="nightly")
    first = await post(api, "/api/v2/jobs", "k-1", BODY)
    await api.call("DELETE", "/api/v2/jobs/nightly")
    again = await post(api, "/api/v2/jobs", "k-1", BODY)
    assert (first.status_code, again.status_code) == (409, 409)
    assert again.headers["Idempotency-Replayed"] == "true"
    assert (await post(api, "/api/v2/jobs", "k-2", BODY)).status_code == 201


async def test_it_keeps_no_refusal_that_has_nothing_to_do_with_the_request(api: Api) -> None:
    assert (await post(api, RUN, "k-1")).status_code == 404
    await api.make(name="manual", schedule_type="manual")
    assert (await post(api, RUN, "k-1")).status_code == 202


@pytest.mark.parametrize(
    ("error", "status"), [(RuntimeError("defect"), 500), (Unavailable("away"), 503)], ids=str
)
async def test_it_forgets_what_was_its_own_fault(
    services: ApiServices, clock: StillClock, error: Exception, status: int
) -> None:
    troubles = [error]

    def vet(_: Job) -> None:
        if troubles:
            raise troubles.pop()

    async with another(services, clock, vet=vet) as api:
        assert (await post(api, "/api/v2/jobs", "k-1", BODY)).status_code == status
        answer = await post(api, "/api/v2/jobs", "k-1", BODY)
        assert (answer.status_code, "Idempotency-Replayed" in answer.headers) == (201, False)


async def test_it_says_409_while_the_first_is_being_answered(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual", overlap="allow")
    first = asyncio.create_task(post(api, RUN, "k-1", Prefer="wait=30"))
    (run,) = await eventually(api.claim)
    busy = await post(api, RUN, "k-1", Prefer="wait=30")
    assert (busy.status_code, busy.headers["Retry-After"]) == (409, "1")
    assert busy.json()["type"] == "urn:noonday:problem:still-answering"
    await api.end(run, Completed())
    answer, again = await first, await post(api, RUN, "k-1")
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")
    assert (again.status_code, again.json()) == (200, answer.json())
    assert again.headers["Preference-Applied"] == "wait=30"


async def test_it_survives_a_restart_until_its_time_is_over(services: ApiServices, clock: StillClock) -> None:
    kept = timedelta(hours=2)
    async with another(services, clock, answers_kept=kept) as api:
        first = await post(api, "/api/v2/jobs", "k-1", BODY)
    clock.advance(hours=1, minutes=59)
    async with another(services, clock, answers_kept=kept) as api:
        again = await post(api, "/api/v2/jobs", "k-1", BODY)
        assert (again.status_code, again.content) == (201, first.content)
        clock.advance(minutes=1)
        anew = await post(api, "/api/v2/jobs", "k-1", BODY)
    assert (anew.status_code, "Idempotency-Replayed" in anew.headers) == (409, False)  # the name is taken


async def test_it_frees_the_key_of_a_process_that_died_in_the_middle(
    services: ApiServices, clock: StillClock
) -> None:
    async with another(services, clock) as api:
        await api.make(name="manual", schedule_type="manual", overlap="allow")
        dying = asyncio.create_task(post(api, RUN, "k-1", Prefer="wait=60"))
        await eventually(api.claim)
        dying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dying
    async with another(services, clock) as api:
        assert (await post(api, RUN, "k-1", Prefer="wait=60")).status_code == 409
        clock.advance(seconds=60)
        assert (await post(api, RUN, "k-1")).status_code == 202


async def test_it_gives_the_answer_even_if_it_cannot_be_remembered(
    services: ApiServices, clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> bool:
        raise Unavailable("the database went away")

    async with another(services, clock) as api:
        with monkeypatch.context() as patched:
            patched.setattr("noonday.store.replays.finish", away)
            answer = await post(api, "/api/v2/jobs", "k-1", BODY)
        assert answer.status_code == 201
        assert (await post(api, "/api/v2/jobs", "k-1", BODY)).status_code == 409


@pytest.mark.parametrize("key", ["", " ", '""', "a b", "x" * 256, '"a', 'a"b', "\x7f"])
async def test_it_refuses_what_is_no_key(sqlite_api: Api, key: str) -> None:
    answer = await post(sqlite_api, "/api/v2/jobs", key, BODY)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "Idempotency-Key")
    assert (await sqlite_api.get("/api/v2/jobs"))["total"] == 0


async def test_it_leaves_other_methods_alone(sqlite_api: Api) -> None:
    await sqlite_api.make(name="nightly")
    headers = {"Idempotency-Key": "k-1"}
    for priority in (1, 3):
        body = {"priority": priority}
        answer = await sqlite_api.call("PUT", "/api/v2/jobs/nightly", body, headers=headers)
        assert (answer.status_code, answer.json()["priority"]) == (200, priority)
        assert (await sqlite_api.get("/api/v2/jobs/nightly", headers=headers))["priority"] == priority


async def test_it_leaves_callbacks_alone_that_have_their_own_proof(sqlite_api: Api) -> None:
    await sqlite_api.make(name="manual", schedule_type="manual")
    await sqlite_api.call("POST", RUN)
    (run,) = await sqlite_api.claim()
    for progress in (0.1, 0.2):
        path = f"/api/v2/executions/{run.id}/callback/progress"
        proof = f"Bearer {token_of(run.id, 1)}"
        answer = await post(sqlite_api, path, run.id, {"progress": progress}, Authorization=proof)
        assert answer.status_code == 200, answer.text
        assert (await sqlite_api.get(f"/api/v2/executions/{run.id}"))["progress"] == progress
    cancelled = [await post(sqlite_api, f"/api/v2/executions/{run.id}/cancel", "k-1") for _ in range(2)]
    assert cancelled[1].headers["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    ("path", "remembered"),
    [
        ("/api/v2/jobs", True),
        ("/api/v2/jobs/bulk", True),
        ("/api/jobs/register", True),
        ("/api/v1/jobs/a/retry", True),
        ("/api/v2/triggers/webhooks", True),
        ("/api/v2/triggers/webhook", False),
        ("/api/v2/triggers/webhook/orders/new", False),
        ("/api/v2/executions/a/cancel", True),
        ("/api/v2/executions/a/callback/result", False),
        ("/api/v2/executions/a/progress", False),
        ("/api/v2/keys", False),
    ],
)
def test_it_knows_where_a_key_means_something(path: str, remembered: bool) -> None:
    assert remembers("POST", path) is remembered
    assert not remembers("PUT", path)


async def test_it_never_keeps_an_api_key(sqlite_api: Api) -> None:
    made = await post(sqlite_api, "/api/v2/keys", "k-1", {"name": "ci", "role": "viewer"})
    assert made.status_code == 201, made.text
    assert await sqlite_api.db.read(lambda conn: conn.execute(table.select()).all()) == []


async def test_it_says_so_when_an_answer_was_too_long_to_be_kept(
    sqlite_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "_LONGEST_BODY", 100)
    await post(sqlite_api, "/api/v2/jobs", "k-1", BODY)
    again = await post(sqlite_api, "/api/v2/jobs", "k-1", BODY)
    assert (again.status_code, "too long" in again.json()["detail"]) == (201, True)


async def test_it_says_503_while_the_database_is_away(services: ApiServices, clock: StillClock) -> None:
    gone = Database("postgresql://nobody@127.0.0.1:1/none")
    try:
        async with another(services, clock, db=gone) as api:
            answer = await post(api, "/api/v2/jobs", "k-1", BODY)
    finally:
        await gone.close()
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
