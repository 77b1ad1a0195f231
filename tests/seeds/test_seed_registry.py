"""The registry of the central scheduler service: its own registration and what it promises services."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.seeds.conftest import Live

DIGEST = {
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
JSON = {"Content_Type": "application/json"}


def register(live: Live, **changes: Any) -> Any:
    body = json.dumps(json.dumps({**DIGEST, **changes}))
    return live.ok(f"curl -X POST http://scheduler-service:7007/api/jobs/register -d {body}", **JSON)


@pytest.fixture(scope="module")
def digest(live: Live) -> Any:
    return register(live)


def test_it_is_listed_and_shown(live: Live, digest: Any) -> None:
    found = live.ok("curl localhost/api/jobs/weekly-digest")
    assert {name: found[name] for name in DIGEST} == DIGEST
    assert "weekly-digest" in json.dumps(live.ok("curl localhost/api/jobs"))


def test_a_trigger_calls_the_service_with_its_context(live: Live, digest: Any) -> None:
    before = len(live.service.calls)
    live.ok("curl -X POST localhost/api/jobs/weekly-digest/trigger")
    live.until(lambda: len(live.service.calls) > before)
    context = live.service.calls[before]
    assert context["path"] == "/api/jobs/weekly-digest"
    assert (context["jobName"], context["config"]) == ("weekly-digest", DIGEST["config"])
    assert context["triggeredBy"] in ("manual", "admin")
    assert context["executionId"]

    def done() -> Any:
        page = live.ok("curl 'localhost/api/jobs/weekly-digest/history?limit=5'")
        assert page["pagination"].keys() >= {"limit", "offset", "total", "hasMore"}
        return [one for one in page["executions"] if one["status"] == "completed"]

    (run,) = live.until(done)
    assert (run["itemsProcessed"], run["itemsSucceeded"], run["itemsFailed"]) == (3, 2, 1)
    stats = live.ok("curl 'localhost/api/jobs/weekly-digest/stats?days=30'")
    assert (stats["jobName"], stats["totalRuns"], stats["successRate"]) == ("weekly-digest", 1, 1.0)


def test_a_redeploy_does_not_undo_what_people_changed(live: Live, digest: Any) -> None:
    live.ok("""curl -X PUT localhost/api/jobs/weekly-digest/cron -d '{"cronExpression": "0 10 * * 1"}'""")
    live.ok("curl -X POST localhost/api/jobs/weekly-digest/disable")
    register(live)
    found = live.ok("curl localhost/api/jobs/weekly-digest")
    assert (found["cronExpression"], found["enabled"]) == ("0 10 * * 1", False)
    live.ok("curl -X POST localhost/api/jobs/weekly-digest/enable")
    register(live, override=True)
    assert live.ok("curl localhost/api/jobs/weekly-digest")["cronExpression"] == "0 9 * * 1"


def test_it_can_be_deleted(live: Live) -> None:
    register(live, name="for-a-day", endpoint="/api/jobs/for-a-day")
    assert live.curl("curl -X DELETE localhost/api/jobs/for-a-day").status < 300
    assert live.curl("curl localhost/api/jobs/for-a-day").status == 404


def test_schedulers_as_the_admin_page_sees_them(live: Live, digest: Any) -> None:
    health = live.ok("curl localhost/api/admin/schedulers/health")
    assert health.keys() >= {"healthy", "status", "timestamp", "schedulers", "details"}
    assert health["schedulers"].keys() >= {"total", "running", "errors"}
    assert health["details"]["weekly-digest"].keys() >= {"status", "healthy", "lastSuccess"}
    body = json.dumps(json.dumps({"action": "pause", "schedulerId": "weekly-digest"}))
    live.ok(f"curl -X POST localhost/api/admin/schedulers -d {body}", **JSON)
    assert (
        live.ok("curl localhost/api/admin/schedulers/health")["details"]["weekly-digest"]["status"]
        == "PAUSED"
    )
    live.ok(f"curl -X POST localhost/api/admin/schedulers -d {body.replace('pause', 'resume')}", **JSON)
    assert "weekly-digest" in json.dumps(live.ok("curl localhost/api/admin/schedulers"))
