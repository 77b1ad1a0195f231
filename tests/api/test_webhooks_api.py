"""Webhook calls where no secret is set: which jobs they start, with what data, once for each delivery."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from noonday.api.services import ApiServices
from noonday.domain.access import Caller, Role
from noonday.domain.job import Trigger
from noonday.domain.outcome import Completed
from noonday.domain.schedule import Event
from noonday.ports import Silence
from noonday.store import deliveries, jobs
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, client_of
from tests.factories import a_job

HOOK = "/api/v2/triggers/webhook"
SERVICE = {"type": "service", "service": "email-service", "endpoint": "/jobs/digest"}


class Counting(Silence):
    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def triggered(self, kind: str, matched: int) -> None:
        self.seen.append((kind, matched))


async def by_header(headers: Headers) -> Caller | None:
    role = headers.get("x-role")
    service = headers.get("x-service")
    return (
        None if role is None else Caller(name=headers.get("x-who", "ada"), role=Role(role), service=service)
    )


@pytest.fixture
def telemetry() -> Counting:
    return Counting()


@pytest.fixture
async def counted(
    services: ApiServices, db: Database, clock: StillClock, telemetry: Counting
) -> AsyncIterator[Api]:
    async with client_of(replace(services, telemetry=telemetry)) as client:
        yield Api(client, db, clock)


@pytest.fixture
async def guarded(services: ApiServices, db: Database, clock: StillClock) -> AsyncIterator[Api]:
    """Everybody must say who they are."""
    async with client_of(replace(services, identify=by_header)) as client:
        client.headers["x-role"] = "admin"
        yield Api(client, db, clock)


async def waits_for(api: Api, pattern: str, **body: Any) -> str:
    made = await api.make(schedule_type="event", trigger_webhook=pattern, **body)
    return str(made["id"])


async def post(api: Api, path: str, content: bytes = b"", /, **headers: str) -> Any:
    answer = await api.client.post(f"{HOOK}{path}", content=content, headers=headers)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def runs(api: Api, job: str) -> list[dict[str, Any]]:
    page = await api.get(f"/api/v2/jobs/{job}/executions")
    found: list[dict[str, Any]] = page["executions"]
    return found


async def test_each_job_that_waits_for_the_path_runs_once(counted: Api, telemetry: Counting) -> None:
    one = await waits_for(counted, "/sources/*/crawl", name="one", config={"limit": 10, "article": 1})
    two = await waits_for(counted, "/sources/**", name="two")
    await waits_for(counted, "/sources/*", name="three")
    await waits_for(counted, "/sources/42/crawl", name="off", schedule_enabled=False)
    told = await post(counted, "/sources/42/crawl", b'{"article": 4711}')
    assert told["matched"] == 2
    assert told["path"] == "/sources/42/crawl"
    assert told["replayed"] is False
    started = {run["job_name"]: run for run in told["executions"]}
    assert {name: (run["job_id"], run["status"]) for name, run in started.items()} == {
        "one": (one, "queued"),
        "two": (two, "queued"),
    }
    [run] = await runs(counted, "one")
    assert run["id"] == started["one"]["execution_id"]
    assert run["cause"] == "trigger"
    assert run["triggered_by_user"] == "webhook:/sources/42/crawl"
    assert run["config"] == {"limit": 10, "article": 4711, "webhook_path": "/sources/42/crawl"}
    assert await runs(counted, "three") == await runs(counted, "off") == []
    assert telemetry.seen == [("webhook", 2)]
    assert {run.id for run in await counted.claim()} == {
        entry["execution_id"] for entry in told["executions"]
    }


async def test_two_calls_within_one_moment_are_two_runs(api: Api) -> None:
    await waits_for(api, "/a", name="often", overlap="allow")
    for _ in range(3):
        await post(api, "/a")
    assert len(await runs(api, "often")) == 3


BODIES: list[tuple[bytes, str, dict[str, Any]]] = [
    (b'{"a": {"b": [1, null]}}', "application/json", {"a": {"b": [1, None]}}),
    (b'{"a": 1}', "application/x-www-form-urlencoded", {"a": 1}),
    (b"\xef\xbb\xbf{}", "application/cloudevents+json", {}),
    (b"", "application/json", {}),
    (b"[1, 2]", "application/json", {"message": "[1, 2]"}),
    (b"<a>\xc3\xbc</a>", "application/xml", {"message": "<a>ü</a>"}),
    (b"payload=%7B%7D", "application/x-www-form-urlencoded", {"message": "payload=%7B%7D"}),
    (b"{broken", "application/json", {"message": "{broken"}),
    (b'{"a": NaN}', "application/json", {"message": '{"a": NaN}'}),
    (b'{"a": "\\u0000"}', "application/json", {"a": "\N{REPLACEMENT CHARACTER}"}),
    (b'{"a": "\\ud800"}', "application/json", {"a": "?"}),
    (b'{"a": 1e999}', "application/json", {"a": "inf"}),
    (b"\x00\xff", "image/png", {"message_base64": base64.b64encode(b"\x00\xff").decode()}),
    (b"a\x00b", "text/plain", {"message_base64": base64.b64encode(b"a\x00b").decode()}),
    (
        b'{"a":' * 100 + b"1" + b"}" * 100,
        "application/json",
        {"message": '{"a":' * 100 + "1" + "}" * 100},
    ),
    (b"[" * 100_000, "application/json", {"message": "[" * 100_000}),
]


async def test_whatever_is_sent_reaches_the_run(api: Api) -> None:
    await waits_for(api, "/any", name="any")
    for content, kind, brought in BODIES:
        told = await post(api, "/any", content, **{"content-type": kind})
        stored = await api.get(f"/api/v2/executions/{told['executions'][0]['execution_id']}")
        assert stored["config"] == {**brought, "webhook_path": "/any"}, content[:40]


async def test_a_megabyte_arrives_whole_and_no_byte_more(sqlite_api: Api) -> None:
    await waits_for(sqlite_api, "/large", name="large")
    text = "x" * ((1 << 20) - 12)
    await post(sqlite_api, "/large", b'{"text":"%s"}' % text[:-1].encode())
    [run] = await sqlite_api.claim()
    assert run.config is not None
    assert run.config["text"] == text[:-1]
    answer = await sqlite_api.client.post(f"{HOOK}/large", content=b"x" * ((1 << 20) + 1))
    assert answer.status_code == 413
    assert len(await runs(sqlite_api, "large")) == 1


NAMING_THE_PATH: list[tuple[Any, dict[str, Any]]] = [
    ({"path": "/p/1", "data": {"a": 1}}, {"a": 1}),
    ({"webhook_path": "p/1", "payload": {"a": 1}}, {"a": 1}),
    ({"pattern": "/p//1/", "a": 1}, {"a": 1}),
    ({"path": "/p/1", "kind": "new", "data": {"a": 1}}, {"kind": "new", "a": 1}),
    ({"path": "/p/1", "data": "text"}, {"message": "text"}),
    ({"path": "/p/1", "data": [1]}, {"message": "[1]"}),
    ({"path": "/p/1", "data": None}, {}),
    ({"path": "/p/1"}, {}),
]


async def test_the_path_may_stand_in_the_body(sqlite_api: Api) -> None:
    await waits_for(sqlite_api, "/p/*")
    for body, brought in NAMING_THE_PATH:
        for address in (HOOK, f"{HOOK}/"):
            answer = await sqlite_api.call("POST", address, body)
            assert answer.status_code == 202, answer.text
            [run] = answer.json()["executions"]
            stored = await sqlite_api.get(f"/api/v2/executions/{run['execution_id']}")
            assert stored["config"] == {**brought, "webhook_path": "/p/1"}


async def test_the_path_may_stand_in_a_header(sqlite_api: Api) -> None:
    await waits_for(sqlite_api, "/p", name="p")
    await post(sqlite_api, "", b"hello", **{"x-webhook-path": "p"})
    await post(sqlite_api, "", b'{"path": "p"}', **{"x-webhook-path": "/p/"})
    assert [run["config"]["webhook_path"] for run in await runs(sqlite_api, "p")] == ["/p", "/p"]
    answer = await sqlite_api.client.post(HOOK, content=b'{"path": "q"}', headers={"x-webhook-path": "p"})
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "X-Webhook-Path"


PATHLESS = [
    *(b"", b"text", b"{}", b"[]", b'{"path": 7}', b'{"path": ["/a"]}', b'{"path": null}'),
    *(b'{"path": "/a/../b"}', b'{"path": "/a\\u0000"}', b'{"path": "/\\ud800"}'),
    b'{"path": "%s"}' % (b"a" * 600),
]


async def test_a_call_without_a_good_path_is_refused(sqlite_api: Api) -> None:
    for content in PATHLESS:
        answer = await sqlite_api.client.post(HOOK, content=content)
        assert answer.status_code == 422, answer.text
        assert answer.json()["errors"][0]["field"] == "path"
    for path in ("/" + "a" * 600, "/a" * 100, "/%2e%2e/a", "/a%09b", "/a/%2e"):
        answer = await sqlite_api.client.post(f"{HOOK}{path}")
        assert answer.status_code == 422, answer.text


async def test_nothing_that_waits_is_no_error(counted: Api, telemetry: Counting) -> None:
    """A sender must not try again for ever."""
    told = await post(counted, "/nobody")
    assert (told["matched"], told["executions"]) == (0, [])
    assert telemetry.seen == [("webhook", 0)]


async def test_a_paused_job_keeps_a_note_of_what_it_missed(counted: Api, telemetry: Counting) -> None:
    job = await waits_for(counted, "/a", name="held")
    assert (await counted.call("POST", f"/api/v2/jobs/{job}/pause")).status_code == 200
    told = await post(counted, "/a")
    assert [run["status"] for run in told["executions"]] == ["skipped"]
    [row] = await runs(counted, "held")
    assert (row["status"], row["skip_reason"], row["detail"]) == (
        "skipped",
        "paused",
        "its webhook was called",
    )
    assert telemetry.seen == [("webhook", 0)]


async def test_the_same_delivery_again_starts_nothing(counted: Api, telemetry: Counting) -> None:
    await waits_for(counted, "/a", name="a")
    first = await post(counted, "/a", b'{"n": 1}', **{"webhook-id": "msg_1"})
    assert first["delivery_id"] == "msg_1"
    counted.clock.advance(hours=23)
    again = await post(counted, "//a/", b'{"n": 2}', **{"x-webhook-id": "msg_1"})
    assert again == first | {"replayed": True}
    assert len(await runs(counted, "a")) == 1
    assert len(telemetry.seen) == 1
    await post(counted, "/a", b'{"n": 1}', **{"webhook-id": "msg_2"})
    assert len(await runs(counted, "a")) == 2
    other = await counted.client.post(f"{HOOK}/b", headers={"webhook-id": "msg_1"})
    assert other.status_code == 409


async def test_a_delivery_that_comes_many_times_at_once_starts_its_jobs_once(api: Api) -> None:
    await waits_for(api, "/a", name="a", overlap="allow")
    await waits_for(api, "/*", name="b", overlap="allow")
    told = await asyncio.gather(*(post(api, "/a", **{"webhook-id": "msg_1"}) for _ in range(8)))
    assert sorted(answer["replayed"] for answer in told) == [False] + [True] * 7
    assert len({answer["executions"][0]["execution_id"] for answer in told}) == 1
    assert len(await runs(api, "a")) == len(await runs(api, "b")) == 1


async def test_many_deliveries_at_once_start_a_run_each(api: Api) -> None:
    await waits_for(api, "/a", name="a", overlap="allow")
    await waits_for(api, "/*", name="b", overlap="allow")
    told = await asyncio.gather(*(post(api, "/a") for _ in range(12)))
    assert all(answer["matched"] == 2 for answer in told)
    assert len(await runs(api, "a")) == len(await runs(api, "b")) == 12


async def test_what_cannot_be_written_leaves_no_trace_of_the_delivery(api: Api) -> None:
    crowd = [a_job(schedule=Event(), trigger=Trigger(webhook="/many")) for _ in range(65)]
    await api.db.write(lambda conn: jobs.add_many(conn, crowd))
    answer = await api.client.post(f"{HOOK}/many", content=b"x" * (1 << 20), headers={"webhook-id": "m1"})
    assert answer.status_code == 422, answer.text
    assert "65 jobs wait for /many" in answer.json()["error"]
    assert (await api.get("/api/v2/triggers/deliveries"))["total"] == 0
    assert (await post(api, "/many", b"x", **{"webhook-id": "m1"}))["matched"] == 65


async def test_an_odd_id_is_refused(sqlite_api: Api) -> None:
    for name in ("a.b", "a b", "x" * 201, ""):
        answer = await sqlite_api.client.post(f"{HOOK}/a", headers={"webhook-id": name})
        assert answer.status_code == 422


async def test_a_change_of_a_job_counts_for_the_next_call(api: Api) -> None:
    job = await waits_for(api, "/a", name="moving")
    assert (await post(api, "/a"))["matched"] == 1
    await api.call("PUT", f"/api/v2/jobs/{job}", {"trigger_webhook": "/b"})
    assert (await post(api, "/a"))["matched"] == 0
    assert (await post(api, "/b"))["matched"] == 1
    await api.call("PUT", f"/api/v2/jobs/{job}", {"schedule_enabled": False})
    assert (await post(api, "/b"))["matched"] == 0
    await api.call("PUT", f"/api/v2/jobs/{job}", {"schedule_enabled": True})
    assert (await post(api, "/b"))["matched"] == 1
    await api.call("POST", f"/api/v2/jobs/{job}/cancel")
    assert (await post(api, "/b"))["matched"] == 0


async def test_a_change_elsewhere_that_was_not_heard_of_yet_counts_as_well(
    api: Api, services: ApiServices, db_url: str
) -> None:
    """Another instance, whose notices come late: what it believes is looked at again before it counts."""
    job = await waits_for(api, "/a", name="moving")
    other = Database(db_url)
    try:
        async with client_of(replace(services, db=other)) as client:
            elsewhere = Api(client, other, api.clock)
            assert (await post(elsewhere, "/a"))["matched"] == 1
            await api.call("PUT", f"/api/v2/jobs/{job}", {"trigger_webhook": "/b"})
            assert (await post(elsewhere, "/b"))["matched"] == 1
            await api.call("PUT", f"/api/v2/jobs/{job}", {"trigger_webhook": "/c"})
            assert (await post(elsewhere, "/b"))["matched"] == 0
            assert (await post(elsewhere, "/c"))["matched"] == 1
            await api.call("DELETE", f"/api/v2/jobs/{job}")
            await waits_for(api, "/c", name="in its place")
            told = await post(elsewhere, "/c")
            assert [run["job_name"] for run in told["executions"]] == ["in its place"]
    finally:
        await other.close()


async def test_a_pattern_that_plain_sql_spoiled_harms_itself_alone(api: Api) -> None:
    bad = await waits_for(api, "/a", name="bad")
    await waits_for(api, "/a", name="good")
    await api.db.write(
        lambda conn: conn.exec_driver_sql(f"UPDATE jobs SET trigger_webhook = '/a*/..' WHERE id = '{bad}'")
    )
    assert [run["job_name"] for run in (await post(api, "/a"))["executions"]] == ["good"]
    assert (await api.get("/api/v2/triggers/webhooks"))["total"] == 2
    tested = await api.call("POST", "/api/v2/triggers/test", {"path": "/a"})
    assert [job["job_name"] for job in tested.json()["jobs"]] == ["good"]


async def test_without_a_secret_the_caller_needs_the_right_to_run(guarded: Api) -> None:
    for role, status in (("admin", 202), ("operator", 202), ("service", 202), ("viewer", 403)):
        answer = await guarded.client.post(f"{HOOK}/a", headers={"x-role": role})
        assert answer.status_code == status
    del guarded.client.headers["x-role"]
    answer = await guarded.client.post(f"{HOOK}/a")
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_a_service_starts_and_sees_its_own_jobs_alone(guarded: Api) -> None:
    await waits_for(guarded, "/a", name="theirs")
    await waits_for(guarded, "/a", name="own", target=SERVICE)
    as_service = {"x-role": "service", "x-service": "email-service"}
    told = await post(guarded, "/a", **as_service)
    assert [run["job_name"] for run in told["executions"]] == ["own"]
    for path in ("webhooks", "status"):
        shown = await guarded.get(f"/api/v2/triggers/{path}", headers=as_service)
        assert shown.get("total", shown.get("webhooks_count")) == 1
    tested = await guarded.call("POST", "/api/v2/triggers/test", {"path": "/a"}, headers=as_service)
    assert [job["job_name"] for job in tested.json()["jobs"]] == ["own"]
    hidden = await guarded.client.get("/api/v2/triggers/deliveries", headers=as_service)
    assert hidden.status_code == 403
    nameless = await post(guarded, "/a", **{"x-role": "service"})
    assert nameless["matched"] == 0


async def test_callers_do_not_share_ids(guarded: Api) -> None:
    await waits_for(guarded, "/a", name="a")
    for who in ("ada", "bob"):
        told = await post(guarded, "/a", **{"x-who": who, "webhook-id": "1"})
        assert (told["replayed"], told["delivery_id"]) == (False, "1")


async def test_a_page_from_elsewhere_may_not_call(sqlite_api: Api) -> None:
    answer = await sqlite_api.client.post(f"{HOOK}/a", headers={"origin": "https://evil.test"})
    assert answer.status_code == 403


async def test_it_can_wait_for_the_runs_to_end(sqlite_api: Api) -> None:
    await waits_for(sqlite_api, "/a", name="a")
    asked = asyncio.create_task(sqlite_api.client.post(f"{HOOK}/a", headers={"prefer": "wait=30"}))
    async with asyncio.timeout(10):
        while not (claimed := await sqlite_api.claim()):
            await asyncio.sleep(0.01)
    await sqlite_api.end(claimed[0], Completed())
    answer = await asked
    assert answer.status_code == 200
    assert answer.headers["Preference-Applied"] == "wait=30"
    assert answer.headers["Location"] == f"/api/v2/executions/{claimed[0].id}"
    assert [run["status"] for run in answer.json()["executions"]] == ["completed"]


async def test_other_bodies_are_still_read_as_json(sqlite_api: Api) -> None:
    answer = await sqlite_api.client.post("/api/v2/triggers/webhooks", content=b"no json")
    assert answer.status_code == 400


async def test_it_remembers_for_a_day(sqlite_api: Api) -> None:
    await post(sqlite_api, "/a", **{"webhook-id": "1"})
    before = sqlite_api.clock.advance(hours=1)
    await post(sqlite_api, "/a", **{"webhook-id": "2"})
    assert await sqlite_api.db.write(lambda conn: deliveries.prune(conn, before)) == 1
    shown = await sqlite_api.get("/api/v2/triggers/deliveries")
    assert [delivery["delivery_id"] for delivery in shown["deliveries"]] == ["anonymous 2"]
