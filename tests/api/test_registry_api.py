"""Services declare their jobs over HTTP, people change them, and a redeploy undoes nothing of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from noonday.api.dialects.registry_shapes import (
    RegisteredJob,
    RegisteredJobs,
    Registration,
    RegistrationOfAll,
    RegistryExecution,
    RegistryHistory,
    RegistryStats,
)
from noonday.api.services import ApiServices
from noonday.domain.execution import Execution
from noonday.domain.outcome import Completed, Failed, Result
from tests.api.caller import Api, StillClock, client_of
from tests.api.people import bearer, claims, closed, token
from tests.api.until import eventually

DIGEST: dict[str, Any] = {
    "name": "weekly-digest",
    "displayName": "Weekly Digest",
    "description": "Send weekly trending content to users",
    "cronExpression": "0 9 * * 1",
    "enabled": True,
    "jobType": "email",
    "service": "email-service",
    "endpoint": "/api/jobs/weekly-digest",
    "config": {"batchSize": 100, "maxUsers": 10000},
}
ADMIN = bearer(token(claims(role="admin")))
OPERATOR = bearer(token())
EMAIL = bearer(token(claims(role="service", sub="mailer", service="email-service")))


async def register(api: Api, status: int = 200, **changes: Any) -> dict[str, Any]:
    answer = await api.call("POST", "/api/jobs/register", DIGEST | changes)
    assert answer.status_code == status, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def did(api: Api, method: str, path: str, body: Any = None, status: int = 200) -> dict[str, Any]:
    answer = await api.call(method, f"/api/jobs/{path}", body)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def begun(api: Api) -> Execution:
    found: list[Execution] = await eventually(api.claim)
    return found[0]


@pytest.fixture
async def shut(services: ApiServices) -> AsyncIterator[Api]:
    async with closed(services) as api:
        yield api


async def test_it_registers_the_seeds_own_example(api: Api) -> None:
    made = await register(api, 201)
    Registration.model_validate(made, strict=False)
    assert (made["success"], made["created"], made["replaced"]) == (True, True, False)
    shown = await api.get("/api/jobs/weekly-digest")
    assert {name: shown[name] for name in DIGEST} == DIGEST
    assert set(shown) == {field.alias for field in RegisteredJob.model_fields.values()}
    assert (shown["nextRunAt"], shown["totalRuns"]) == ("2027-01-04T09:00:00Z", 0)
    again = await register(api)
    assert (again["created"], again["replaced"], again["changed"], again["kept"]) == (False, False, [], [])
    assert again["job"] == made["job"]


async def test_it_takes_everything_that_can_be_declared(sqlite_api: Api) -> None:
    more = {
        "timezone": "Europe/Berlin",
        "critical": True,
        "tags": ["mail"],
        "priority": 1,
        "timeoutSeconds": 60,
        "maxRetries": 5,
        "retryBackoffSeconds": 1.5,
        "misfireGraceSeconds": 10,
        "maxInstances": 2,
        "overlap": "queue",
        "metadata": {"team": "growth"},
    }
    made = (await register(sqlite_api, 201, **more))["job"]
    for name in made.keys() & more.keys():
        assert made[name] == more[name], name
    job = await sqlite_api.get("/api/v2/jobs/weekly-digest")
    assert (job["overlap"], job["max_instances"], job["retry_backoff_seconds"]) == ("queue", 2, 1.5)
    changed = (await register(sqlite_api))["changed"]
    assert set(changed) == (more.keys() - {"metadata"}) | {"metadata.team"}
    plain = await sqlite_api.get("/api/v2/jobs/weekly-digest")
    assert (plain["overlap"], plain["timezone"], plain["priority"]) == ("skip", "UTC", 2)


async def test_names_with_underscores_mean_the_same(sqlite_api: Api) -> None:
    snake = {"name": "s", "cron_expression": "0 * * * *", "service": "a", "endpoint": "/s", "job_type": "x"}
    answer = await sqlite_api.call("POST", "/api/jobs/register", snake)
    assert (answer.status_code, answer.json()["job"]["jobType"]) == (201, "x")


async def test_what_a_person_changed_stays_and_the_answer_says_so(api: Api) -> None:
    await register(api, 201)
    await did(api, "PUT", "weekly-digest/cron", {"cronExpression": "0 10 * * 1"})
    off = await did(api, "POST", "weekly-digest/disable")
    assert (off["success"], off["job"]["enabled"]) == (True, False)
    await api.call("PUT", "/api/v2/jobs/weekly-digest", {"config": {"batchSize": 50, "maxUsers": 10000}})
    done = await register(api, config={"batchSize": 200, "maxUsers": 1})
    assert done["changed"] == ["config.maxUsers"]
    assert [(kept["field"], kept["declared"], kept["kept"]) for kept in done["kept"]] == [
        ("config.batchSize", 200, 50),
        ("cronExpression", "0 9 * * 1", "0 10 * * 1"),
        ("enabled", True, False),
    ]
    assert "kept as it is here: config.batchSize, cronExpression, enabled" in done["message"]
    back = await register(api, override=["cronExpression", "config"])
    assert back["changed"] == ["config.batchSize", "config.maxUsers", "cronExpression"]
    assert [kept["field"] for kept in back["kept"]] == ["enabled"]
    assert (await register(api, override=True))["job"]["enabled"] is True


async def test_a_pause_outlives_every_redeploy(api: Api) -> None:
    await register(api, 201)
    await api.call("POST", "/api/v2/jobs/weekly-digest/pause")
    done = await register(api, cronExpression="0 8 * * *", override=True)
    assert (done["changed"], done["job"]["paused"], done["job"]["nextRunAt"]) == (
        ["cronExpression"],
        True,
        None,
    )


async def test_where_existing_jobs_are_left_alone_it_says_so(
    services: ApiServices, clock: StillClock
) -> None:
    async with client_of(replace(services, replace_existing=False)) as client:
        api = Api(client, services.db, clock)
        await register(api, 201)
        done = await register(api, cronExpression="0 8 * * *")
        assert (done["replaced"], done["job"]["cronExpression"]) == (False, "0 9 * * 1")
        assert "JOB_REPLACE_EXISTING_INSTANCE" in done["message"]


async def test_secrets_of_a_declaration_are_not_shown(sqlite_api: Api) -> None:
    await register(sqlite_api, 201, config={"apiKey": "sesame", "nested": {"password": "open"}})
    stored = (await sqlite_api.stored("weekly-digest")).config
    assert stored["apiKey"] == "sesame"
    change = {"config": {"apiKey": "other", "nested": {"password": "shut"}}}
    await sqlite_api.call("PUT", "/api/v2/jobs/weekly-digest", change)
    answer = await sqlite_api.call(
        "POST",
        "/api/jobs/register",
        DIGEST | {"config": {"apiKey": "third", "nested": {"password": "ajar"}}},
    )
    kept = answer.json()["kept"]
    assert [each["field"] for each in kept] == ["config.apiKey", "config.nested"]
    listed = await sqlite_api.call("GET", "/api/jobs")
    for word in ("sesame", "open", "other", "shut", "third", "ajar"):
        assert f'"{word}"' not in answer.text + listed.text


BAD: list[tuple[dict[str, Any], str]] = [
    ({"name": "a/b"}, "name"),
    ({"name": ""}, "name"),
    ({"name": "x" * 201}, "name"),
    ({"name": "00000000-0000-7000-8000-000000000000"}, "name"),
    ({"cronExpression": "61 * * * *"}, "cronExpression"),
    ({"cronExpression": "0 0 30 2 *"}, "cronExpression"),
    ({"cronExpression": None}, "cronExpression"),
    ({"cronExpression": "* " * 200}, "cronExpression"),
    ({"timezone": "Mars/Base"}, "timezone"),
    ({"service": "a b"}, "service"),
    ({"service": "../x"}, "service"),
    ({"service": None}, "service"),
    ({"endpoint": "//evil.example/"}, "endpoint"),
    ({"endpoint": "@evil.example/"}, "endpoint"),
    ({"endpoint": "https://evil.example/"}, "endpoint"),
    ({"endpoint": "/a\nb"}, "endpoint"),
    ({"enabled": "yes"}, "enabled"),
    ({"enabled": 1}, "enabled"),
    ({"priority": 4}, "priority"),
    ({"timeoutSeconds": 0}, "timeoutSeconds"),
    ({"maxRetries": -1}, "maxRetries"),
    ({"overlap": "sometimes"}, "overlap"),
    ({"config": []}, "config"),
    ({"config": {"apiKey": "********"}}, "config.apiKey"),
    ({"metadata": {"job_type": "x"}}, "metadata"),
    ({"dependsOn": ["nobody"]}, "dependsOn[0]"),
    ({"override": ["status"]}, "override"),
    ({"override": "yes"}, "override"),
    ({"status": "running"}, "status"),
    ({"id": "1"}, "id"),
    ({"lock_token": "x"}, "lock_token"),
]


async def test_it_refuses_what_is_wrong_under_the_name_that_was_sent(sqlite_api: Api) -> None:
    for change, field in BAD:
        answer = await sqlite_api.call("POST", "/api/jobs/register", DIGEST | change)
        assert answer.status_code == 422, (change, answer.text)
        assert answer.json()["errors"][0]["field"].startswith(field), (change, answer.text)
        if "service" in change:
            continue
        one = {name: value for name, value in (DIGEST | change).items() if name != "service"}
        whole = {"service": "email-service", "jobs": [DIGEST | {"name": "first"}, one]}
        answer = await sqlite_api.call("POST", "/api/jobs/register/all", whole)
        assert answer.status_code == 422, (change, answer.text)
        assert answer.json()["errors"][0]["field"].startswith("jobs[1]."), (change, answer.text)
    assert (await sqlite_api.get("/api/jobs"))["total"] == 0


async def test_it_registers_the_whole_set_of_a_service(api: Api) -> None:
    def whole(*names: str, **more: Any) -> dict[str, Any]:
        return {"service": "email-service", "jobs": [DIGEST | {"name": name} for name in names], **more}

    done = await did(api, "POST", "register/all", whole("a", "b", "c"))
    RegistrationOfAll.model_validate(done, strict=False)
    assert [(one["name"], one["created"]) for one in done["jobs"]] == [("a", True), ("b", True), ("c", True)]
    api.clock.advance(seconds=1)
    less = await did(api, "POST", "register/all", whole("a", prune="disable"))
    assert (less["disabled"], less["jobs"][0]["changed"]) == (["b", "c"], [])
    assert "2 that it does not declare any more were disabled" in less["message"]
    back = await did(api, "POST", "register/all", whole("a", "b", "c", prune="keep"))
    assert [one["changed"] for one in back["jobs"]] == [[], ["enabled"], ["enabled"]]
    twice = await api.call("POST", "/api/jobs/register/all", whole("a", "a"))
    assert (twice.status_code, twice.json()["errors"][0]["field"]) == (422, "jobs[1].name")
    other = {"service": "crawler-service", "jobs": [DIGEST]}
    strange = await api.call("POST", "/api/jobs/register/all", other)
    assert (strange.status_code, strange.json()["errors"][0]["field"]) == (422, "jobs[0].service")


async def test_it_lists_jobs_by_name_with_their_figures(api: Api) -> None:
    for name in ("b", "a", "c"):
        await register(api, 201, name=name, service=f"{name}-service")
    await api.make(name="by-hand")
    page = await api.get("/api/jobs", params={"limit": 2, "offset": 1})
    RegisteredJobs.model_validate(page, strict=False)
    assert [job["name"] for job in page["jobs"]] == ["b", "by-hand"]
    assert page["pagination"] == {"limit": 2, "offset": 1, "total": 4, "hasMore": True}
    assert page["jobs"][1]["service"] is None
    own = await api.get("/api/jobs", params={"service": "c-service"})
    assert [job["name"] for job in own["jobs"]] == ["c"]
    await did(api, "POST", "a/disable")
    rest = await api.get("/api/jobs", params={"enabled": "false"})
    assert [job["name"] for job in rest["jobs"]] == ["a"]
    assert rest["pagination"]["hasMore"] is False
    for wrong in ({"limit": 0}, {"limit": 201}, {"offset": -1}, {"color": "red"}):
        assert (await api.call("GET", "/api/jobs", params=wrong)).status_code == 422


async def test_the_history_holds_the_results_in_full(api: Api) -> None:
    await register(api, 201)
    started = await did(api, "POST", "weekly-digest/trigger", {"config": {"maxUsers": 1}}, status=202)
    assert started.keys() == {"success", "message", "jobName", "executionId"}
    (run,) = await api.claim()
    api.clock.advance(seconds=2)
    result = Result(
        items_processed=3,
        items_succeeded=2,
        items_failed=1,
        value={"nextCursor": "abc"},
        metadata={"batch": 7},
    )
    await api.end(run, Completed(result=result))
    await did(api, "POST", "weekly-digest/trigger", status=202)
    (run,) = await api.claim()
    await api.end(run, Failed(error="the mailbox is full", retryable=False))
    page = await api.get("/api/jobs/weekly-digest/history")
    RegistryHistory.model_validate(page, strict=False)
    failed, done = page["executions"]
    assert set(done) == {field.alias for field in RegistryExecution.model_fields.values()}
    assert (done["id"], done["durationMs"], done["itemsProcessed"]) == (started["executionId"], 2000, 3)
    assert (done["jobName"], done["triggeredBy"], done["triggeredByUser"]) == (
        "weekly-digest",
        "manual",
        "anonymous",
    )
    assert done["result"] == {
        "success": True,
        "itemsProcessed": 3,
        "itemsSucceeded": 2,
        "itemsFailed": 1,
        "nextCursor": "abc",
        "metadata": {"batch": 7},
    }
    assert (failed["status"], failed["errorMessage"]) == ("failed", "the mailbox is full")
    assert (failed["result"]["success"], failed["result"]["error"]) == (False, "the mailbox is full")
    only = await api.get("/api/jobs/weekly-digest/history", params={"status": "failed", "limit": 1})
    assert [one["status"] for one in only["executions"]] == ["failed"]
    assert only["pagination"] == {"limit": 1, "offset": 0, "total": 1, "hasMore": False}
    stats = await api.get("/api/jobs/weekly-digest/stats", params={"days": 7})
    RegistryStats.model_validate(stats, strict=False)
    assert set(stats) == {field.alias for field in RegistryStats.model_fields.values()}
    assert (stats["totalRuns"], stats["successfulRuns"], stats["failedRuns"]) == (2, 1, 1)
    assert (stats["successRate"], stats["averageDurationMs"], len(stats["byDay"])) == (0.5, 2000, 7)
    job = await api.get("/api/jobs/weekly-digest")
    assert (job["totalRuns"], job["successfulRuns"], job["failedRuns"]) == (2, 1, 1)
    assert (await api.call("GET", "/api/jobs/weekly-digest/stats?days=0")).status_code == 422


async def test_a_trigger_may_wait_for_the_end(api: Api) -> None:
    await register(api, 201)
    path = "/api/jobs/weekly-digest/trigger"
    calling = asyncio.create_task(api.call("POST", path, headers={"Prefer": "wait=20"}))
    run = await begun(api)
    await api.end(run, Completed(result=Result(items_processed=4)))
    answer = await calling
    assert (answer.status_code, answer.headers["Preference-Applied"]) == (200, "wait=20")
    assert answer.json()["result"]["itemsProcessed"] == 4


async def test_it_looks_after_a_job(api: Api) -> None:
    await register(api, 201)
    assert (await did(api, "POST", "weekly-digest/disable"))["job"]["nextRunAt"] is None
    assert (await did(api, "POST", "weekly-digest/enable"))["job"]["nextRunAt"] is not None
    cron = {"cronExpression": "30 6 * * *", "timezone": "Europe/Berlin"}
    changed = (await did(api, "PUT", "weekly-digest/cron", cron))["job"]
    assert {name: changed[name] for name in cron} == cron
    bad = await api.call("PUT", "/api/jobs/weekly-digest/cron", {"cronExpression": "never"})
    assert (bad.status_code, bad.json()["errors"][0]["field"]) == (422, "cronExpression")
    assert (await did(api, "DELETE", "weekly-digest"))["success"] is True
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/history"),
        ("GET", "/stats"),
        ("POST", "/trigger"),
        ("POST", "/enable"),
        ("POST", "/disable"),
    ):
        assert (await api.call(method, f"/api/jobs/weekly-digest{path}")).status_code == 404, path
    assert (await api.call("PUT", "/api/jobs/weekly-digest/cron", cron)).status_code == 404


async def test_a_person_may_give_any_job_a_cron_text(sqlite_api: Api) -> None:
    await sqlite_api.make(name="beat", interval_minutes=6, interval_type="hours")
    assert (await sqlite_api.get("/api/jobs/beat"))["cronExpression"] is None
    done = await did(sqlite_api, "PUT", "beat/cron", {"cronExpression": "0 */6 * * *"})
    assert done["job"]["cronExpression"] == "0 */6 * * *"


async def test_a_service_registers_and_sees_its_own_alone(shut: Api) -> None:
    async def ask(method: str, path: str, body: Any = None, **headers: str) -> Any:
        return await shut.call(method, f"/api/jobs{path}", body, headers=headers)

    foreign = DIGEST | {"name": "crawl", "service": "crawler-service"}
    assert (await ask("POST", "/register", DIGEST, **EMAIL)).status_code == 201
    assert (await ask("POST", "/register", foreign, **EMAIL)).status_code == 403
    assert (await ask("POST", "/register", DIGEST, **OPERATOR)).status_code == 403
    assert (await ask("POST", "/register", DIGEST)).status_code == 401
    assert (await ask("POST", "/register", foreign, **ADMIN)).status_code == 201
    taken = foreign | {"service": "email-service", "override": ["service"]}
    conflict = await ask("POST", "/register", taken, **EMAIL)
    assert conflict.status_code == 409
    assert "crawler-service" not in conflict.text
    whole = {"service": "crawler-service", "jobs": [], "prune": "disable"}
    assert (await ask("POST", "/register/all", whole, **EMAIL)).status_code == 403
    assert [job["name"] for job in (await ask("GET", "", **EMAIL)).json()["jobs"]] == ["weekly-digest"]
    assert (await ask("GET", "?service=crawler-service", **EMAIL)).status_code == 403
    assert (await ask("GET", "/crawl", **EMAIL)).status_code == 404
    assert (await ask("POST", "/crawl/trigger", **EMAIL)).status_code == 404
    run = await ask("POST", "/weekly-digest/trigger", **EMAIL)
    assert run.status_code == 202
    history = (await ask("GET", "/weekly-digest/history", **EMAIL)).json()
    assert history["executions"][0]["triggeredByUser"] == "mailer"
    for path in ("/weekly-digest/disable", "/weekly-digest/enable"):
        assert (await ask("POST", path, **EMAIL)).status_code == 403
        assert (await ask("POST", path, **OPERATOR)).status_code == 200
    entry = await shut.call("GET", "/api/jobs/weekly-digest", headers=OPERATOR)
    assert entry.json()["enabled"] is True
