"""The first version over HTTP: what a client of the interval scheduler sends and reads."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from noonday.api.dialects.v1 import V1JobPage, V1JobShape, V1Metrics, V1Retried, V1Stats
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.domain.outcome import Completed, Failed, Outcome
from noonday.store import jobs
from noonday.store.database import Database
from noonday.store.tables import jobs as jobs_table
from tests.api.caller import Api, StillClock, client_of
from tests.api.until import eventually
from tests.factories import NOON

CRAWL = {"source_id": "news", "url": "https://example.com", "interval_minutes": 6, "interval_type": "hours"}


async def made(api: Api, **body: Any) -> dict[str, Any]:
    answer = await api.call("POST", "/api/v1/jobs", CRAWL | body)
    assert answer.status_code == 201, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def ran(api: Api, job: str, outcome: Outcome, seconds: float = 2) -> None:
    answer = await api.call("POST", f"/api/v2/jobs/{job}/force-run")
    assert answer.status_code == 202, answer.text
    (run,) = await api.claim()
    api.clock.advance(seconds=seconds)
    await api.end(run, outcome)


async def test_it_lives_through_the_life_of_a_job(api: Api) -> None:
    job = await made(api)
    assert job.keys() == V1JobShape.model_fields.keys()
    assert {name: job[name] for name in CRAWL} == CRAWL
    assert (job["status"], job["next_run_at"]) == ("scheduled", "2027-01-01T18:00:00Z")
    path = f"/api/v1/jobs/{job['id']}"

    changed = await api.call("PUT", path, {"interval_minutes": 30, "interval_type": "minutes"})
    assert (changed.status_code, changed.json()["next_run_at"]) == (200, "2027-01-01T12:30:00Z")
    assert changed.headers["ETag"] == '"2"'
    stale = await api.call("PUT", path, {"max_retries": 1}, headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    paused = await api.call("POST", f"{path}/pause")
    assert (paused.json()["status"], paused.json()["is_paused"]) == ("paused", True)
    resumed = await api.call("POST", f"{path}/resume")
    assert (resumed.json()["status"], resumed.json()["is_paused"]) == ("scheduled", False)
    again = await api.call("POST", f"{path}/resume")
    assert (again.status_code, again.json()["current"]) == (409, "scheduled")
    cancelled = await api.call("POST", f"{path}/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (200, "cancelled")
    assert (await api.call("DELETE", path)).status_code == 204
    assert (await api.call("GET", path)).status_code == 404


async def test_it_retries_what_failed_and_tells_of_the_job_and_the_run(api: Api) -> None:
    job = await made(api, max_retries=0)
    early = await api.call("POST", f"/api/v1/jobs/{job['id']}/retry")
    assert (early.status_code, early.json()["current"]) == (409, "scheduled")
    await ran(api, job["id"], Failed(error="no"))
    answer = await api.call("POST", f"/api/v1/jobs/{job['id']}/retry")
    told = answer.json()
    assert answer.status_code == 202
    assert told.keys() == V1Retried.model_fields.keys()
    assert (told["status"], told["id"], told["job_id"]) == ("pending", job["id"], job["id"])
    assert answer.headers["Location"] == f"/api/v1/executions/{told['execution_id']}"
    found = await api.get(answer.headers["Location"])
    assert (found["execution_number"], found["status"]) == (2, "queued")


async def test_it_waits_for_a_retry_if_asked(sqlite_api: Api) -> None:
    api = sqlite_api
    job = await made(api, max_retries=0)
    await ran(api, job["id"], Failed(error="no"))
    path = f"/api/v1/jobs/{job['id']}/retry"
    calling = asyncio.create_task(api.call("POST", path, headers={"Prefer": "wait=30"}))
    (run,) = await eventually(api.claim)
    await api.end(run, Completed())
    answer = await calling
    assert (answer.status_code, answer.json()["status"]) == (200, "completed")
    assert answer.headers["Preference-Applied"] == "wait=30"
    assert answer.headers["Location"] == f"/api/v1/executions/{run.id}"


async def test_it_makes_jobs_of_its_own_version_unless_told_otherwise(api: Api) -> None:
    assert (await made(api))["scheduler_version"] == 1
    assert (await made(api, scheduler_version=2))["scheduler_version"] == 2
    assert (await api.make())["scheduler_version"] == 2
    reset = await api.call("PUT", f"/api/v1/jobs/{(await made(api))['id']}", {"scheduler_version": None})
    assert reset.json()["scheduler_version"] == 1


async def test_it_lists_and_filters(api: Api) -> None:
    for source in ("news", "news", "blogs"):
        await made(api, source_id=source)
    off = await made(api, name="off", schedule_enabled=False)
    page = await api.get("/api/v1/jobs", params={"source_id": "news", "limit": 1, "offset": 1})
    assert page.keys() == V1JobPage.model_fields.keys()
    assert (page["total"], page["limit"], page["offset"], len(page["jobs"])) == (3, 1, 1, 1)
    assert (await api.get("/api/v1/jobs", params={"status": "running"}))["jobs"] == []
    found = await api.get("/api/v1/jobs", params={"schedule_enabled": "false"})
    assert [job["id"] for job in found["jobs"]] == [off["id"]]
    assert (await api.get("/api/v1/jobs", params={"name": "OF"}))["total"] == 1
    wrong = await api.call("GET", "/api/v1/jobs", params={"limit": "201"})
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (422, "limit")


async def test_it_gives_statistics_in_its_own_shape(api: Api) -> None:
    job = await made(api, max_retries=0)
    empty = await api.get(f"/api/v1/jobs/{job['id']}/stats")
    assert empty == {
        "total_executions": 0,
        "successful_runs": 0,
        "failed_runs": 0,
        "average_duration_ms": 0,
        "last_execution_at": None,
        "next_scheduled_at": "2027-01-01T18:00:00Z",
        "success_rate": 0,
    }
    for outcome, seconds in ((Completed(), 1), (Completed(), 3), (Failed(error="no"), 60), (Completed(), 2)):
        await ran(api, job["id"], outcome, seconds)
    stats = await api.get(f"/api/v1/jobs/{job['id']}/stats")
    assert stats.keys() == V1Stats.model_fields.keys()
    assert stats == {
        "total_executions": 4,
        "successful_runs": 3,
        "failed_runs": 1,
        "average_duration_ms": 2000,
        "last_execution_at": "2027-01-01T12:01:04Z",
        "next_scheduled_at": "2027-01-01T18:00:00Z",
        "success_rate": 0.75,
    }


async def test_it_gives_metrics_in_its_own_shape(db: Database, clock: StillClock) -> None:
    status = LocalStatus(instance_id="one", started_at=NOON, last_check_at=NOON - timedelta(seconds=3))
    async with client_of(ApiServices(db=db, clock=clock, status=lambda: status)) as client:
        api = Api(client, db, clock)
        job = await made(api, max_retries=0)
        await made(api)
        await ran(api, job["id"], Completed(), 2)
        await ran(api, job["id"], Failed(error="no"), 9)
        lock = jobs_table.update().where(jobs_table.c.id == job["id"])
        for _ in range(2):
            await db.write(lambda conn: conn.execute(lock.values(lock_token="dead")))
            await db.write(lambda conn: jobs.clear_stale_locks(conn, clock.now(), timedelta(minutes=5)))
        seen = await api.get("/api/v1/scheduler/metrics")
    assert seen.keys() == V1Metrics.model_fields.keys()
    counts = {"scheduled": 2, "running": 0, "completed": 0, "failed": 0, "cancelled": 0}
    assert {state: seen["jobs"][state] for state in counts} == counts
    assert seen["executions"] == {"total": 2, "average_duration_ms": 2000, "success_rate": 0.5}
    assert seen["last_check_at"] == "2027-01-01T11:59:57Z"
    assert seen["last_metrics_update"] == "2027-01-01T12:00:11Z"
    assert seen["stale_locks_cleared"] == 2


CALLS = [
    ("GET", "/jobs"),
    ("GET", "/jobs/crawl"),
    ("GET", "/jobs/nobody"),
    ("PUT", "/jobs/crawl"),  # without a body: refused
    ("POST", "/jobs/crawl/resume"),  # not paused: refused
    ("GET", "/jobs/crawl/stats"),
    ("GET", "/jobs/crawl/executions"),
    ("GET", "/executions/nope"),
    ("GET", "/scheduler/metrics"),
    ("GET", "/scheduler/distribution"),
    ("POST", "/scheduler/rebalance/preview"),
    ("DELETE", "/jobs/crawl"),
]


async def test_it_points_to_its_successor_with_every_answer(sqlite_api: Api) -> None:
    await made(sqlite_api, name="crawl")
    for method, path in CALLS:
        answer = await sqlite_api.call(method, f"/api/v1{path}")
        assert answer.headers["Deprecation"] == "@1798761600"
        assert answer.headers["Sunset"] == "Mon, 01 Jan 2029 00:00:00 GMT"
        assert answer.headers["Link"] == f'</api/v2{path}>; rel="successor-version"'


async def test_it_has_a_successor_for_each_of_its_addresses(sqlite_api: Api) -> None:
    known = (await sqlite_api.get("/openapi.json"))["paths"]
    old = [path for path in known if path.startswith("/api/v1/")]
    assert len(old) == 13
    for path in old:
        newer = known[path.replace("/api/v1/", "/api/v2/")]
        for method, operation in known[path].items():
            assert operation["deprecated"] is True
            assert not newer[method].get("deprecated")


@pytest.mark.parametrize("name", ["déjà vu", "night\r\nX-Evil: 1", '>; rel="x"', "%2e%2e"])
async def test_it_puts_no_address_into_a_header_unquoted(sqlite_api: Api, name: str) -> None:
    answer = await sqlite_api.call("GET", f"/api/v1/jobs/{quote(name)}")
    assert answer.status_code == 404
    assert "X-Evil" not in answer.headers
    assert answer.headers["Link"].isascii()
    assert answer.headers["Link"].count(">") == 1


async def test_it_works_where_version_two_is_switched_off(sqlite_db: Database, clock: StillClock) -> None:
    status = LocalStatus(instance_id="one", started_at=NOON)
    services = ApiServices(db=sqlite_db, clock=clock, status=lambda: status, v2_enabled=False)
    async with client_of(services) as client:
        job = (await client.post("/api/v1/jobs", json=CRAWL)).json()
        for path in ("jobs", f"jobs/{job['id']}/stats", "scheduler/metrics", "scheduler/distribution"):
            assert (await client.get(f"/api/v1/{path}")).status_code == 200
            assert (await client.get(f"/api/v2/{path}")).status_code == 503


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, ("immediate", True)),
        ({"schedule_enabled": False}, ("immediate", True)),  # there is no schedule to switch off
        ({"schedule_enabled": False, "interval_type": "minutes"}, ("immediate", True)),
        ({"schedule_enabled": False, "interval_minutes": 5}, ("interval", False)),
        ({"schedule_enabled": False, "schedule_type": "immediate"}, ("immediate", False)),
        ({"schedule_enabled": False, "trigger_webhook": "/x"}, ("event", False)),
        ({"schedule_time": "0 * * * *", "interval_type": "minutes"}, ("cron", True)),
        ({"schedule_time": "0 * * * *", "interval_minutes": 5}, ("interval", True)),
    ],
    ids=str,
)
async def test_it_reads_each_way_of_saying_when(
    sqlite_api: Api, body: dict[str, Any], expected: tuple[str, bool]
) -> None:
    answer = await sqlite_api.call("POST", "/api/v1/jobs", {"url": "https://example.com", **body})
    assert answer.status_code == 201, answer.text
    assert (answer.json()["schedule_type"], answer.json()["schedule_enabled"]) == expected


HOURLY = {"interval_minutes": 1, "interval_type": "hours", "schedule_time": None}


@pytest.mark.parametrize(
    ("before", "change", "expected"),
    [
        ({"schedule_time": "0 * * * *"}, {"schedule_time": "5 * * * *"}, ("cron", "5 * * * *")),
        ({"schedule_time": "0 * * * *"}, {"cron_expression": "5 * * * *"}, ("cron", "5 * * * *")),
        ({"schedule_time": "0 * * * *"}, HOURLY, ("interval", 1)),
        (
            {"interval_minutes": 5},
            {"schedule_time": "5 * * * *", "interval_minutes": None},
            ("cron", "5 * * * *"),
        ),
        ({"interval_minutes": 5}, {"schedule_time": "5 * * * *"}, ("interval", 5)),  # the interval wins
        ({"interval_minutes": 5}, {"interval_type": "hours"}, ("interval", 5)),
        ({"interval_minutes": 5}, {"description": "x"}, ("interval", 5)),
    ],
    ids=str,
)
@pytest.mark.parametrize("whole", [True, False], ids=["what was read, changed", "the change alone"])
async def test_it_takes_back_what_was_read_with_a_change(
    sqlite_api: Api, before: dict[str, Any], change: dict[str, Any], expected: tuple[str, Any], whole: bool
) -> None:
    if not whole and expected == ("interval", 5) and "schedule_time" in change:
        expected = ("cron", "5 * * * *")  # alone, it is the only word about when
    answer = await sqlite_api.call("POST", "/api/v1/jobs", {"url": "https://example.com", **before})
    job = answer.json()
    sent = (job | change) if whole else change
    answer = await sqlite_api.call("PUT", f"/api/v1/jobs/{job['id']}", sent)
    assert answer.status_code == 200, answer.text
    seen = answer.json()
    assert (seen["schedule_type"], seen["cron_expression"] or seen["interval_minutes"]) == expected
    assert seen["schedule_time"] == seen["cron_expression"]
    if "interval_type" in change:
        assert seen["interval_type"] == change["interval_type"]


async def test_its_name_for_a_cron_text_changes_the_text_under_version_two_as_well(sqlite_api: Api) -> None:
    job = await sqlite_api.make(cron_expression="0 * * * *")
    answer = await sqlite_api.call("PUT", f"/api/v2/jobs/{job['id']}", {"schedule_time": "5 * * * *"})
    assert answer.json()["cron_expression"] == "5 * * * *"
