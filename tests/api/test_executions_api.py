"""The history over HTTP, under version 2 and under version 1; and the callbacks of remote runs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from noonday.api.shapes import AttemptShape, ExecutionDetail, ExecutionPage, ExecutionShape
from noonday.domain.execution import Execution
from noonday.domain.outcome import Accepted, Completed, Failed, Result, Usage
from tests.api.caller import Api, token_of


async def a_run(api: Api, **job: Any) -> Execution:
    """One that is going on."""
    made = await api.make(schedule_type="manual", **job)
    await api.call("POST", f"/api/v2/jobs/{made['id']}/force-run")
    (run,) = await api.claim()
    return run


async def a_remote_run(api: Api) -> Execution:
    run = await a_run(api, target={"type": "http", "url": "https://example.com", "heartbeat_seconds": 90})
    await api.end(run, Accepted(heartbeat=timedelta(seconds=90)))
    return run


async def test_it_tells_of_a_run_under_the_names_of_both_versions(api: Api) -> None:
    run = await a_run(api, name="crawl")
    api.clock.advance(seconds=2.5)
    usage = Usage(cpu_time_ms=12, memory_peak_mb=3.5)
    result = Result(
        items_processed=10, items_succeeded=9, items_failed=1, metadata={"api_key": "x"}, usage=usage
    )
    await api.end(run, Completed(result=result))

    page = await api.get("/api/v2/jobs/crawl/executions")
    old = await api.call("GET", "/api/v1/jobs/crawl/executions")

    assert page.keys() == ExecutionPage.model_fields.keys()
    assert page.pop("next_cursor") is None
    assert old.json() == page
    (seen,) = page["executions"]
    assert seen.keys() == ExecutionShape.model_fields.keys()
    expected = {
        "execution_number": 1,
        "status": "completed",
        "scheduled_for": "2027-01-01T12:00:00Z",
        "started_at": "2027-01-01T12:00:00Z",
        "completed_at": "2027-01-01T12:00:02.500000Z",
        "duration_ms": 2500,
        "items_crawled": 10,
        "items_indexed": 9,
        "error_message": None,
        "stack_trace": None,
        "cpu_time_ms": 12,
        "memory_peak_mb": 3.5,
        "retry_attempt": 0,
        "metadata": {"api_key": "********"},
    }
    assert {name: seen[name] for name in expected} == expected
    assert (seen["lateness_ms"], seen["attempt"], seen["instance_id"]) == (0, 1, "worker-1")
    assert old.headers["Deprecation"].startswith("@")
    assert old.headers["Link"] == '</api/v2/jobs/crawl/executions>; rel="successor-version"'


async def test_it_shows_each_attempt(api: Api) -> None:
    run = await a_run(api, retry_backoff_seconds=60)
    await api.end(run, Failed(error="first", stack="Traceback"))
    waiting = await api.get(f"/api/v2/executions/{run.id}")
    assert (waiting["status"], waiting["wait_reason"], waiting["retry_attempt"]) == ("pending", "retry", 1)
    assert waiting["reason"] == "waits for its next try"
    api.clock.advance(seconds=60)
    (again,) = await api.claim()
    await api.end(again, Completed())
    for version in ("v1", "v2"):
        seen = await api.get(f"/api/{version}/executions/{run.id}")
        assert seen.keys() == ExecutionDetail.model_fields.keys()
        assert [(a["number"], a["outcome"], a["error_message"]) for a in seen["attempts"]] == [
            (1, "failed", "first"),
            (2, "completed", None),
        ]
        assert all(attempt.keys() == AttemptShape.model_fields.keys() for attempt in seen["attempts"])


async def test_it_pages_and_filters_the_history(api: Api) -> None:
    job = await api.make(name="many", schedule_type="manual")
    for outcome in (Completed(), Failed(error="no", retryable=False), Completed()):
        api.clock.advance(seconds=1)
        await api.call("POST", f"/api/v2/jobs/{job['id']}/force-run")
        (run,) = await api.claim()
        await api.end(run, outcome)
    page = await api.get("/api/v2/jobs/many/executions", params={"limit": 1, "offset": 1})
    assert [e["status"] for e in page["executions"]] == ["failed"]
    assert (page["total"], page["limit"], page["offset"]) == (3, 1, 1)
    done = await api.get("/api/v2/jobs/many/executions", params={"status": "completed"})
    assert [e["execution_number"] for e in done["executions"]] == [3, 1]


@pytest.mark.parametrize(
    "path", ["/api/v2/executions/nope", "/api/v1/executions/nope", "/api/v2/jobs/x/executions"]
)
async def test_it_finds_no_history_of_nothing(api: Api, path: str) -> None:
    answer = await api.call("GET", f"/api/{path}")
    assert answer.status_code == 404
    assert "there is no" in answer.json()["error"]


async def test_it_cancels_an_execution(api: Api) -> None:
    run = await a_run(api)
    answer = await api.call("POST", f"/api/v2/executions/{run.id}/cancel")
    assert (answer.status_code, answer.json()["status"]) == (202, "running")
    await api.end(run, Completed())
    again = await api.call("POST", f"/api/v2/executions/{run.id}/cancel")
    assert again.status_code == 409
    assert "there is nothing to cancel" in again.json()["error"]


@pytest.mark.parametrize("own", [False, True], ids=["bearer", "own header"])
async def test_it_takes_heartbeats_progress_and_the_result(api: Api, own: bool) -> None:
    run = await a_remote_run(api)
    token = token_of(run.id, 1)
    headers = {"X-Scheduler-Callback-Token": token} if own else {"Authorization": f"Bearer {token}"}
    path = f"/api/v2/executions/{run.id}/callback"

    async def tell(where: str, body: Any = None) -> Any:
        answer = await api.call("POST", path + where, body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    assert await tell("", {"type": "heartbeat"}) == {"cancel_requested": False}
    assert await tell("/heartbeat") == {"cancel_requested": False}
    await tell("", {"type": "progress", "progress": 0.25})
    await tell("/progress", {"progress": 0.5, "message": "half"})
    seen = await api.get(f"/api/v2/executions/{run.id}")
    assert (seen["progress"], seen["progress_message"], seen["remote"]) == (0.5, "half", True)
    await api.call("POST", f"/api/v2/executions/{run.id}/cancel")
    assert await tell("/heartbeat", {}) == {"cancel_requested": True}
    result = {
        "success": True,
        "itemsProcessed": 4,
        "itemsSucceeded": 3,
        "itemsFailed": 1,
        "metadata": {"a": 1},
    }
    await tell("/result", result) if own else await tell("", {"type": "result", **result})
    done = await api.get(f"/api/v2/executions/{run.id}")
    assert (done["items_processed"], done["items_failed"], done["metadata"]) == (4, 1, {"a": 1})
    late = await api.call("POST", path + "/heartbeat", headers=headers)
    assert late.status_code == 410
    assert "is over" in late.json()["error"]


async def test_it_takes_a_failure_in_the_seeds_words(api: Api) -> None:
    run = await a_remote_run(api)
    headers = {"Authorization": f"Bearer {token_of(run.id, 1)}"}
    body = {"success": False, "error": "no room", "retryable": False, "items_processed": 1}
    answer = await api.call("POST", f"/api/v2/executions/{run.id}/result", body, headers=headers)
    assert answer.status_code == 200, answer.text
    seen = await api.get(f"/api/v2/executions/{run.id}")
    assert (seen["status"], seen["error_message"], seen["items_processed"]) == ("failed", "no room", 1)


async def test_it_opens_callbacks_to_the_token_alone(api: Api) -> None:
    run = await a_remote_run(api)
    path = f"/api/v2/executions/{run.id}/callback/result"
    body = {"success": True}
    without = await api.call("POST", path, body)
    assert (without.status_code, without.headers["WWW-Authenticate"]) == (401, "Bearer")
    good = token_of(run.id, 1)
    for header in ("Bearer guess", f"Basic {good}", f"Bearer {token_of(run.id, 2)}", "Bearer ", good):
        answer = await api.call("POST", path, body, headers={"Authorization": header})
        assert answer.status_code in (401, 403)
        assert good not in answer.text
    assert (await api.get(f"/api/v2/executions/{run.id}"))["status"] == "running"
    nowhere = path.replace(run.id, "nope")
    headers = {"Authorization": f"Bearer {token_of(run.id, 1)}"}
    assert (await api.call("POST", nowhere, body, headers=headers)).status_code == 404


@pytest.mark.parametrize(
    ("where", "body", "field"),
    [
        ("", {}, ""),
        ("", {"type": "joke"}, ""),
        ("", {"type": "heartbeat", "pulse": 70}, "pulse"),
        ("", {"type": "result"}, "success"),
        ("/progress", {"progress": 1.5}, "progress"),
        ("/progress", {"progress": "half"}, "progress"),
        ("/result", {}, "success"),
        ("/result", {"success": "yes"}, "success"),
        ("/result", {"success": True, "itemsProcessed": -1}, "itemsProcessed"),
        ("/result", {"success": True, "itemsProcessed": 2**63}, "itemsProcessed"),
        ("/result", {"success": True, "metadata": []}, "metadata"),
    ],
)
async def test_it_refuses_a_wrong_report(sqlite_api: Api, where: str, body: Any, field: str) -> None:
    run = await a_remote_run(sqlite_api)
    headers = {"Authorization": f"Bearer {token_of(run.id, 1)}"}
    path = f"/api/v2/executions/{run.id}/callback{where}"
    answer = await sqlite_api.call("POST", path, body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == field, answer.text
    assert (await sqlite_api.get(f"/api/v2/executions/{run.id}"))["status"] == "running"
