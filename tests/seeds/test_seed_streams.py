"""The calls that the streams scheduler's document prints, against a live instance."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.seeds.conftest import Live

CREATE = """curl -X POST http://localhost:8060/api/v2/jobs \\
  -d '{"source_id":"uuid","url":"https://example.com",
       "schedule_type":"cron","cron_expression":"0 */6 * * *"}'"""
HEALTH = {
    "status",
    "running",
    "is_leader",
    "workers_active",
    "workers_busy",
    "queue_depth",
    "cron_jobs_count",
    "last_check_at",
    "uptime_seconds",
    "circuit_breaker_state",
}


@pytest.fixture(scope="module")
def job(live: Live) -> dict[str, Any]:
    found: dict[str, Any] = live.ok(CREATE)
    return found


def test_a_job_made_by_curl_goes_to_the_second_engine(live: Live, job: dict[str, Any]) -> None:
    assert (job["source_id"], job["cron_expression"], job["scheduler_version"]) == ("uuid", "0 */6 * * *", 2)
    page = live.ok("curl 'http://localhost:8060/api/v2/jobs?priority=2&status=scheduled&limit=10'")
    assert job["id"] in [one["id"] for one in page["jobs"]]
    assert {"jobs", "total", "limit", "offset"} <= page.keys()


def test_the_whole_life_of_a_job(live: Live) -> None:
    made = live.ok(
        "curl -X POST localhost/api/v2/jobs -d "
        + f"""'{{"url": "{live.service.url}/page", "schedule_type": "event", "priority": 1}}'"""
    )
    base = f"localhost/api/v2/jobs/{made['id']}"
    started = live.curl(f"curl -X POST {base}/force-run")
    assert started.status == 202
    assert {"message", "job_id", "execution_id"} <= started.json.keys()
    assert live.ended(started.json["execution_id"])["status"] == "completed"
    changed = live.ok(f"""curl -X PUT {base} -d '{{"timeout_seconds": 7200}}'""")
    assert (changed["timeout_seconds"], changed["priority"]) == (7200, 1)
    assert live.ok(f"curl -X POST {base}/pause")["status"] == "paused"
    assert live.ok(f"curl -X POST {base}/resume")["is_paused"] is False
    assert live.ok(f"curl -X POST {base}/cancel")["status"] == "cancelled"
    assert live.curl(f"curl -X DELETE {base}").status == 204
    gone = live.curl(f"curl {base}")
    assert (gone.status, gone.headers["content-type"]) == (404, "application/problem+json")
    assert gone.json["error"] == gone.json["detail"]


def test_the_scheduler_tells_how_it_fares(live: Live) -> None:
    assert live.ok("curl http://localhost:8060/api/v2/scheduler/health").keys() >= HEALTH
    workers = live.ok("curl http://localhost:8060/api/v2/scheduler/workers")
    assert {"total", "active", "idle", "draining", "workers", "queue_size"} <= workers.keys()
    assert live.ok("curl http://localhost:8060/api/v2/scheduler/metrics")["jobs"]
    assert live.curl("curl -X POST localhost/api/v2/scheduler/drain").status == 202
    assert live.curl("curl -X POST localhost/api/v2/scheduler/resume").status == 202
    metrics = live.curl("curl localhost/metrics").text
    assert "crawler_scheduler_worker_pool_size" in metrics


def test_webhooks_with_stars_start_jobs(live: Live) -> None:
    made = live.ok(
        "curl -X POST localhost/api/v2/jobs -d "
        + f"""'{{"url": "{live.service.url}/crawl", "schedule_type": "event", "name": "crawl-on-call"}}'"""
    )
    registered = live.ok(
        "curl -X POST localhost/api/v2/triggers/webhooks -d "
        + json.dumps(json.dumps({"job_id": made["id"], "pattern": "/sources/*/crawl"}))
    )
    assert (registered["job_id"], registered["pattern"]) == (made["id"], "/sources/*/crawl")
    called = live.curl(
        """curl -X POST localhost/api/v2/triggers/webhook/sources/42/crawl -d '{"depth": 2}'"""
    )
    assert called.status == 202
    (started,) = called.json["executions"]
    ended = live.ended(started["execution_id"])
    assert (ended["status"], ended["cause"], ended["config"]["depth"]) == ("completed", "trigger", 2)
    status = live.ok("curl localhost/api/v2/triggers/status")
    assert {
        "status",
        "webhooks_count",
        "channels_count",
        "pubsub_enabled",
        "webhook_enabled",
    } <= status.keys()
    assert status["webhooks_count"] == 1
    assert status["pubsub_enabled"] is (live.kind == "cluster")
    assert live.curl(f"curl -X DELETE localhost/api/v2/triggers/jobs/{made['id']}").status < 300
    assert live.ok("curl localhost/api/v2/triggers/status")["webhooks_count"] == 0


def test_channels_are_registered_and_listed(live: Live, job: dict[str, Any]) -> None:
    body = json.dumps(json.dumps({"job_id": job["id"], "channel": "content:new"}))
    registered = live.ok(f"curl -X POST localhost/api/v2/triggers/channels -d {body}")
    assert (registered["job_id"], registered["channel"]) == (job["id"], "content:new")
    assert "content:new" in json.dumps(live.ok("curl localhost/api/v2/triggers/channels"))
