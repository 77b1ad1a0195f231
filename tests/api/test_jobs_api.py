"""`/api/v2/jobs`: create, list, read, change, delete; the same on both databases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from noonday.api.bodies import READ_ONLY
from noonday.api.services import ApiServices
from noonday.api.shapes import JobShape
from noonday.domain.errors import invalid
from noonday.domain.job import Job
from tests.api.caller import Api, client_of

WHOLE: dict[str, Any] = {
    "name": "nightly report",
    "description": "of all sales\nby region",
    "tags": ["sales", "nightly"],
    "source_id": "source-1",
    "target": {
        "type": "http",
        "url": "https://reports.example.com/run?day=1",
        "method": "PUT",
        "headers": {"Authorization": "Bearer s3cr3t", "X-Team": "sales"},
        "body": {"region": "eu", "api_key": "s3cr3t"},
        "expected_status": [200, 204],
        "heartbeat_seconds": 120,
    },
    "schedule_type": "calendar",
    "frequency": "weekly",
    "time_config": {"day": "friday", "hour": 22, "minute": 30},
    "timezone": "Europe/Berlin",
    "start_at": "2027-01-02T00:00:00Z",
    "end_at": "2028-01-01T00:00:00Z",
    "max_runs": 40,
    "jitter_seconds": 30,
    "windows": [{"days": ["friday", "saturday"], "start": "20:00", "end": "06:00"}],
    "calendar": {"excluded_dates": ["2027-12-31"], "holidays": "DE-BY"},
    "outside": "move",
    "config": {"size": 3, "password": "s3cr3t"},
    "metadata": {"owner": "ana"},
    "priority": 1,
    "timeout_seconds": 90.5,
    "max_retries": 5,
    "retry_backoff_seconds": 10,
    "retry_jitter": True,
    "on_lost": "fail",
    "misfire_grace_seconds": 60,
    "coalesce": False,
    "catch_up": "latest",
    "max_instances": 2,
    "overlap": "queue",
    "trigger_webhook": "/sales/*/closed",
    "trigger_channel": "sales:closed",
    "schedule_enabled": True,
    "retention_runs": 10,
    "retention_days": 5,
    "scheduler_version": 1,
}
HIDDEN = {
    "target": {
        **WHOLE["target"],
        "headers": {"Authorization": "********", "X-Team": "sales"},
        "body": {"region": "eu", "api_key": "********"},
    },
    "config": {"size": 3, "password": "********"},
}


async def test_it_creates_a_job_and_says_where_it_is(api: Api) -> None:
    answer = await api.call(
        "POST", "/api/v2/jobs", {"url": "https://example.com/a", "cron_expression": "@daily"}
    )
    job = answer.json()
    assert answer.status_code == 201
    assert answer.headers["Location"] == f"/api/v2/jobs/{job['id']}"
    assert answer.headers["ETag"] == '"1"'
    assert (job["status"], job["next_run_at"]) == ("scheduled", "2027-01-02T00:00:00Z")
    assert job["next_runs"] == [f"2027-01-0{day}T00:00:00Z" for day in (2, 3, 4)]
    assert job["schedule_words"] == "At 00:00 every day, UTC"
    assert job["target"]["type"] == "fetch"
    assert await api.get(answer.headers["Location"]) == job


async def test_it_keeps_and_returns_every_field(api: Api) -> None:
    job = await api.make(**WHOLE)
    assert {name: job[name] for name in WHOLE} == {**WHOLE, **HIDDEN}
    assert await api.get("/api/v2/jobs/nightly report") == job
    assert job.keys() == JobShape.model_fields.keys()


async def test_it_never_shows_a_secret(api: Api) -> None:
    job = await api.make(**WHOLE)
    seen = [await api.call("GET", path) for path in ("/api/v2/jobs", f"/api/v2/jobs/{job['id']}")]
    seen.append(await api.call("PUT", f"/api/v2/jobs/{job['id']}", {"priority": 2}))
    assert all(answer.status_code == 200 and "s3cr3t" not in answer.text for answer in seen)


async def test_it_takes_back_what_it_gave_and_changes_nothing(api: Api) -> None:
    job = await api.make(**WHOLE)
    answer = await api.call("PUT", f"/api/v2/jobs/{job['id']}", job)
    assert (answer.status_code, answer.json()) == (200, job)
    stored = await api.stored(job["id"])
    assert stored.target.headers["Authorization"] == "Bearer s3cr3t"
    assert stored.target.body["api_key"] == stored.config["password"] == "s3cr3t"


async def test_it_changes_the_fields_that_are_named_and_no_other(api: Api) -> None:
    job = await api.make(**WHOLE)
    api.clock.advance(minutes=1)
    answer = await api.call("PUT", "/api/v2/jobs/nightly report", {"priority": 3, "tags": ["weekly"]})
    changed = answer.json()
    assert answer.status_code == 200
    assert answer.headers["ETag"] == '"2"'
    different = {name for name in job if job[name] != changed[name]}
    assert different == {"priority", "tags", "updated_at", "revision"}


DAILY = {"cron_expression": "@daily"}
AT_TWO = {"frequency": "daily", "time_config": {"hour": 2}}


@pytest.mark.parametrize(
    ("before", "body", "after"),
    [
        ({"interval_minutes": 30}, {"interval_type": "hours"}, {"interval_minutes": 30}),
        ({"interval_minutes": 30}, DAILY, {"schedule_type": "cron", "interval_minutes": None}),
        (AT_TWO, {"time_config": {"hour": 3}}, {"frequency": "daily", "next_run_at": "2027-01-02T03:00:00Z"}),
        (AT_TWO, {"frequency": "weekly"}, {"next_run_at": "2027-01-04T02:00:00Z"}),
        (DAILY, {"schedule_type": "manual"}, {"cron_expression": None, "next_runs": []}),
        (DAILY, {"timezone": "Asia/Tokyo"}, {"next_run_at": "2027-01-01T15:00:00Z"}),
        ({**DAILY, "max_runs": 3}, {"max_runs": None}, {"max_runs": None}),
        ({**DAILY, "priority": 1}, {"priority": None}, {"priority": 2}),
        (DAILY, {"schedule_enabled": False}, {"next_run_at": None, "next_runs": []}),
        (DAILY, {"enabled": False}, {"schedule_enabled": False, "status": "scheduled"}),
        ({"url": "https://a.example/x"}, {"url": "https://b.example/y"}, {"url": "https://b.example/y"}),
        ({"name": "old"}, {"name": "new"}, {"name": "new"}),
        ({"name": "kept"}, {"name": None}, {"name": "kept"}),
    ],
    ids=str,
)
async def test_it_changes_a_schedule_piece_by_piece(
    sqlite_api: Api, before: dict[str, Any], body: dict[str, Any], after: dict[str, Any]
) -> None:
    job = await sqlite_api.make(**before)
    answer = await sqlite_api.call("PUT", f"/api/v2/jobs/{job['id']}", body)
    assert answer.status_code == 200, answer.text
    assert {name: answer.json()[name] for name in after} == after


async def test_it_does_not_send_a_secret_to_another_place(api: Api) -> None:
    job = await api.make(**WHOLE)
    moved = {**job["target"], "url": "https://evil.example/"}
    for body in ({"target": moved}, {"url": "https://evil.example/"}):
        answer = await api.call("PUT", f"/api/v2/jobs/{job['id']}", body)
        assert answer.status_code == 422, answer.text
        assert "s3cr3t" not in answer.text
    plain = {"type": "http", "url": "https://other.example/", "headers": {"Authorization": "Bearer new"}}
    answer = await api.call("PUT", f"/api/v2/jobs/{job['id']}", {"target": plain})
    assert answer.status_code == 200, answer.text
    assert (await api.stored(job["id"])).target.headers == {"Authorization": "Bearer new"}


async def test_it_honours_the_etag_that_was_read(api: Api) -> None:
    job = await api.make()
    path = f"/api/v2/jobs/{job['id']}"
    read = await api.call("GET", path)
    first = await api.call("PUT", path, {"priority": 1}, headers={"If-Match": read.headers["ETag"]})
    second = await api.call("PUT", path, {"priority": 3}, headers={"If-Match": read.headers["ETag"]})
    assert (first.status_code, second.status_code) == (200, 412)
    assert second.headers["Content-Type"] == "application/problem+json"
    assert (await api.call("DELETE", path, headers={"If-Match": '"1"'})).status_code == 412
    assert (await api.call("PUT", path, {"priority": 3}, headers={"If-Match": "*"})).status_code == 200
    assert (await api.call("PUT", path, {"priority": 1}, headers={"If-Match": "junk"})).status_code == 412


async def test_it_deletes_a_job_by_its_name(api: Api) -> None:
    await api.make(name="short lived")
    answer = await api.call("DELETE", "/api/v2/jobs/short lived")
    assert (answer.status_code, answer.content) == (204, b"")
    gone = await api.call("GET", "/api/v2/jobs/short lived")
    assert gone.status_code == 404
    assert gone.json()["error"] == "there is no job 'short lived'"


async def test_it_lists_jobs_page_by_page(api: Api) -> None:
    for number in range(5):
        api.clock.advance(seconds=1)
        await api.make(name=f"job {number}")
    page = await api.get("/api/v2/jobs", params={"limit": 2, "offset": 1})
    assert [job["name"] for job in page["jobs"]] == ["job 3", "job 2"]
    assert (page["total"], page["limit"], page["offset"]) == (5, 2, 1)
    named = await api.get("/api/v2/jobs", params={"order": "name", "limit": 200})
    assert [job["name"] for job in named["jobs"]] == [f"job {n}" for n in range(5)]


async def test_it_finds_jobs_by_what_they_are(api: Api) -> None:
    await api.make(name="Crawl one", priority=1, tags=["x", "y"], source_id="s1")
    await api.make(name="crawl two", interval_minutes=5, schedule_enabled=False)
    paused = await api.make(name="100%_real", schedule_type="manual")
    await api.call("POST", f"/api/v2/jobs/{paused['id']}/pause")
    wanted = {
        "status=paused": ["100%_real"],
        "priority=1": ["Crawl one"],
        "schedule_type=interval": ["crawl two"],
        "tag=y": ["Crawl one"],
        "name=CRAWL": ["Crawl one", "crawl two"],
        "q=two": ["crawl two"],
        "q=%25_": ["100%_real"],
        "source_id=s1": ["Crawl one"],
        "enabled=false": ["crawl two"],
        "enabled=true&schedule_type=cron": ["Crawl one"],
        "tag=' OR 1=1 --": [],
    }
    for query, names in wanted.items():
        page = await api.get(f"/api/v2/jobs?{query}")
        assert sorted(job["name"] for job in page["jobs"]) == names, query
        assert page["total"] == len(names)


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=x", "offset=-1", "offset=99999999999999999999", "status=odd",
        "priority=4", "order=id;drop", "enabled=perhaps", "stauts=paused", "schedule_type=weekly",
        f"q={'x' * 1001}", "q=stauts:failed", "cursor=x", "offset=1&cursor=W10", "q=%00",
    ],
)  # fmt: skip
async def test_it_refuses_a_wrong_query_by_name(sqlite_api: Api, query: str) -> None:
    answer = await sqlite_api.call("GET", f"/api/v2/jobs?{query}")
    assert answer.status_code in (400, 422), answer.text
    if answer.status_code == 422:
        assert answer.json()["errors"][0]["field"] == query.partition("=")[0]


async def test_it_refuses_a_name_that_is_taken(api: Api) -> None:
    await api.make(name="digest")
    answer = await api.call("POST", "/api/v2/jobs", {"name": "digest", "url": "https://example.com"})
    assert answer.status_code == 409
    assert answer.json()["error"] == "the name 'digest' is taken by another job"


async def test_it_ignores_what_only_the_scheduler_may_set(api: Api) -> None:
    ignored = dict.fromkeys(READ_ONLY, "2001-01-01T00:00:00Z")
    job = await api.make(name="honest", **ignored)
    assert job["status"] == "scheduled"
    assert "2001" not in str(job)
    answer = await api.call("PUT", "/api/v2/jobs/honest", {**ignored, "id": "other", "lock_token": "x"})
    assert (answer.status_code, answer.json()) == (200, job)


@pytest.mark.parametrize(
    "path", ["../etc/passwd", "..%2f..%2fetc", "'; DROP TABLE jobs; --", "%00", "ä" * 60]
)
async def test_it_finds_nothing_under_an_odd_address(api: Api, path: str) -> None:
    answer = await api.call("GET", f"/api/v2/jobs/{path}")
    assert answer.status_code in (400, 404, 405), answer.text
    assert answer.headers["Content-Type"] == "application/problem+json"


async def test_it_answers_503_when_version_2_is_off(services: ApiServices) -> None:
    async with client_of(replace(services, v2_enabled=False)) as client:
        answer = await client.get("/api/v2/jobs")
        assert answer.status_code == 503
        assert "SCHEDULER_V2_ENABLED=true" in answer.json()["error"]
        assert (await client.get("/health/ready")).status_code == 200


async def test_it_names_the_field_that_was_sent_when_a_target_is_refused(
    services: ApiServices,
) -> None:
    def vet(job: Job) -> None:
        raise invalid("target.url", "x", "is refused")

    target = {"type": "fetch", "url": "https://example.com"}
    async with client_of(replace(services, vet=vet)) as client:
        short = await client.post("/api/v2/jobs", json={"url": "https://example.com"})
        long = await client.post("/api/v2/jobs", json={"target": target})
    assert [answer.json()["errors"][0]["pointer"] for answer in (short, long)] == ["#/url", "#/target/url"]
