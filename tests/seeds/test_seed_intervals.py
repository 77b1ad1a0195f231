"""The calls of the interval scheduler's document: version 1, against a live instance."""

from __future__ import annotations

from typing import Any

import pytest

from tests.seeds.conftest import Live

STATS = {
    "total_executions",
    "successful_runs",
    "failed_runs",
    "average_duration_ms",
    "last_execution_at",
    "next_scheduled_at",
    "success_rate",
}
EXECUTION = {
    "execution_number",
    "status",
    "scheduled_for",
    "started_at",
    "completed_at",
    "duration_ms",
    "items_crawled",
    "items_indexed",
    "error_message",
    "stack_trace",
    "cpu_time_ms",
    "memory_peak_mb",
    "retry_attempt",
    "metadata",
}


@pytest.fixture(scope="module")
def job(live: Live) -> dict[str, Any]:
    """One that has run once, at once."""
    made: dict[str, Any] = live.ok(
        "curl -X POST localhost/api/v1/jobs -d "
        + f"""'{{"source_id": "s-1", "url": "{live.service.url}/v1", "schedule_enabled": true,
            "interval_minutes": 30, "interval_type": "minutes", "max_retries": 3}}'"""
    )
    started = live.ok(f"curl -X POST localhost/api/v2/jobs/{made['id']}/force-run")
    live.ended(started["execution_id"])
    return made


def test_new_jobs_stay_with_the_first_engine(live: Live, job: dict[str, Any]) -> None:
    assert (job["interval_minutes"], job["interval_type"], job["scheduler_version"]) == (30, "minutes", 1)
    page = live.curl("curl http://localhost:8060/api/v1/jobs")
    assert job["id"] in [one["id"] for one in page.json["jobs"]]
    assert {"deprecation", "sunset"} <= page.headers.keys()
    assert "/api/v2/jobs" in page.headers["link"]


def test_history_and_figures(live: Live, job: dict[str, Any]) -> None:
    page = live.ok(f"curl http://localhost:8060/api/v1/jobs/{job['id']}/executions")
    assert {"executions", "total", "limit", "offset"} <= page.keys()
    (execution,) = page["executions"]
    assert execution.keys() >= EXECUTION
    assert live.ok(f"curl localhost/api/v1/executions/{execution['id']}")["status"] == "completed"
    stats = live.ok(f"curl localhost/api/v1/jobs/{job['id']}/stats")
    assert stats.keys() >= STATS
    assert (stats["total_executions"], stats["successful_runs"], stats["success_rate"]) == (1, 1, 1.0)
    metrics = live.ok("curl http://localhost:8060/api/v1/scheduler/metrics")
    assert metrics["jobs"].keys() >= {"scheduled", "running", "completed", "failed", "cancelled"}
    assert metrics["executions"].keys() >= {"total", "average_duration_ms", "success_rate"}
    assert {"last_check_at", "last_metrics_update", "stale_locks_cleared"} <= metrics.keys()


def test_pause_resume_retry_cancel(live: Live) -> None:
    made = live.ok(
        "curl -X POST localhost/api/v1/jobs -d "
        """'{"url": "http://127.0.0.1:9/", "interval_minutes": 1, "interval_type": "days",
            "max_retries": 0}'"""
    )
    base = f"localhost/api/v1/jobs/{made['id']}"
    assert live.ok(f"curl -X POST {base}/pause")["status"] == "paused"
    assert live.ok(f"curl -X POST {base}/resume")["status"] == "scheduled"
    assert live.curl(f"curl -X POST {base}/retry").status == 409, "nothing has failed yet"
    run = live.ok(f"curl -X POST localhost/api/v2/jobs/{made['id']}/force-run")
    assert live.ended(run["execution_id"])["status"] == "failed"
    assert live.curl(f"curl -X POST {base}/retry").status == 202
    live.until(lambda: live.ok(f"curl {base}/executions")["total"] == 2)
    assert live.ok(f"curl -X POST {base}/cancel")["status"] == "cancelled"


def test_the_load_is_spread(live: Live) -> None:
    spread = live.ok("curl localhost/api/v1/scheduler/distribution")
    assert 0 <= spread["score"] <= 1
    assert len(spread["slots"]) * spread["slot_minutes"] == 24 * 60
    assert live.ok("curl -X POST localhost/api/v1/scheduler/rebalance/preview")["moves"] == []
    assert live.ok("curl -X POST localhost/api/v1/scheduler/rebalance")["moves"] == []


def test_the_old_health_check(live: Live) -> None:
    assert live.ok("curl http://localhost:8060/health")["status"] == "healthy"
