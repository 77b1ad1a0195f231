"""Pause, resume, cancel, force-run and retry over HTTP."""

from __future__ import annotations

import pytest

from noonday.domain.outcome import Failed
from tests.api.caller import Api


async def test_it_pauses_and_resumes(api: Api) -> None:
    job = await api.make(name="hourly")
    paused = await api.call("POST", "/api/v2/jobs/hourly/pause")
    assert paused.status_code == 200
    assert {n: paused.json()[n] for n in ("status", "is_paused", "next_run_at", "next_runs")} == {
        "status": "paused",
        "is_paused": True,
        "next_run_at": None,
        "next_runs": [],
    }
    api.clock.advance(hours=2, minutes=30)
    resumed = await api.call("POST", f"/api/v2/jobs/{job['id']}/resume")
    assert (resumed.json()["status"], resumed.json()["next_run_at"]) == ("scheduled", "2027-01-01T15:00:00Z")
    (lapse,) = (await api.get("/api/v2/jobs/hourly/executions"))["executions"]
    assert (lapse["status"], lapse["skip_reason"], lapse["skipped_count"]) == ("skipped", "paused", 2)
    assert lapse["reason"] == "the job was paused"
    assert (lapse["scheduled_for"], lapse["through_at"]) == ("2027-01-01T13:00:00Z", "2027-01-01T14:00:00Z")


@pytest.mark.parametrize("how", [{"params": {"catch_up": "true"}}, {"json": {"catch_up": True}}], ids=str)
async def test_it_catches_up_if_asked(api: Api, how: dict[str, dict[str, object]]) -> None:
    await api.make(name="hourly")
    await api.call("POST", "/api/v2/jobs/hourly/pause")
    api.clock.advance(hours=2, minutes=30)
    resumed = await api.client.post("/api/v2/jobs/hourly/resume", **how)  # type: ignore[arg-type]  # two forms
    assert resumed.json()["next_run_at"] == "2027-01-01T13:00:00Z"
    assert (await api.get("/api/v2/jobs/hourly/executions"))["total"] == 0


async def test_it_names_both_states_of_a_move_that_is_not_allowed(api: Api) -> None:
    await api.make(name="hourly")
    answer = await api.call("POST", "/api/v2/jobs/hourly/resume")
    problem = answer.json()
    assert (answer.status_code, problem["type"]) == (409, "urn:noonday:problem:move-refused")
    assert (problem["current"], problem["wanted"]) == ("scheduled", "scheduled")
    await api.call("POST", "/api/v2/jobs/hourly/cancel")
    for verb in ("pause", "resume", "cancel", "force-run", "retry"):
        answer = await api.call("POST", f"/api/v2/jobs/hourly/{verb}")
        assert answer.status_code == 409
        assert answer.json()["error"].startswith("a job that is cancelled cannot become ")


async def test_it_forces_a_run_with_a_config_of_its_own(api: Api) -> None:
    job = await api.make(name="manual", schedule_type="manual", config={"size": 1})
    body = {"config": {"size": 2, "token": "s3cr3t"}}
    answer = await api.call("POST", "/api/v2/jobs/manual/force-run", body)
    started = answer.json()
    assert answer.status_code == 202
    assert started.keys() == {"message", "job_id", "execution_id"}
    assert started["job_id"] == job["id"]
    assert answer.headers["Location"] == f"/api/v2/executions/{started['execution_id']}"
    seen = await api.get(answer.headers["Location"])
    assert (seen["status"], seen["triggered_by"], seen["cause"]) == ("queued", "manual", "manual")
    assert seen["config"] == {"size": 2, "token": "********"}
    (run,) = await api.claim()
    assert run.config == {"size": 2, "token": "s3cr3t"}


@pytest.mark.parametrize("body", [{"confg": {}}, {"config": []}, {"config": {"token": "********"}}, []])
async def test_it_refuses_a_wrong_config_for_a_run(sqlite_api: Api, body: object) -> None:
    await sqlite_api.make(name="manual", schedule_type="manual")
    answer = await sqlite_api.call("POST", "/api/v2/jobs/manual/force-run", body)
    assert answer.status_code == 422, answer.text
    assert (await sqlite_api.get("/api/v2/jobs/manual/executions"))["total"] == 0


async def test_it_takes_a_force_run_without_any_body(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual")
    assert (await api.client.post("/api/v2/jobs/manual/force-run")).status_code == 202
    busy = await api.client.post("/api/v2/jobs/manual/force-run", content=b"")
    assert busy.status_code == 409
    assert "max_instances 1" in busy.json()["error"]


async def test_it_cancels_the_run_with_the_job(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual")
    await api.call("POST", "/api/v2/jobs/manual/force-run")
    (run,) = await api.claim()
    assert (await api.get("/api/v2/jobs/manual"))["status"] == "running"
    answer = await api.call("POST", "/api/v2/jobs/manual/cancel")
    assert answer.json()["status"] == "cancelled"
    assert (await api.get(f"/api/v2/executions/{run.id}"))["cancel_requested_at"] == "2027-01-01T12:00:00Z"


async def test_it_retries_a_failed_job(api: Api) -> None:
    await api.make(name="once", schedule_type="manual", max_retries=0)
    refused = await api.call("POST", "/api/v2/jobs/once/retry")
    assert refused.status_code == 409
    assert "has not run yet" in refused.json()["error"]
    await api.call("POST", "/api/v2/jobs/once/force-run")
    (run,) = await api.claim()
    await api.end(run, Failed(error="no"))
    answer = await api.call("POST", "/api/v2/jobs/once/retry")
    assert answer.status_code == 202
    assert [again.id for again in await api.claim()] == [answer.json()["execution_id"]]


async def test_it_does_not_change_the_etag_by_running(api: Api) -> None:
    await api.make(name="manual", schedule_type="manual")
    before = (await api.call("GET", "/api/v2/jobs/manual")).headers["ETag"]
    await api.call("POST", "/api/v2/jobs/manual/force-run")
    await api.claim()
    assert (await api.call("GET", "/api/v2/jobs/manual")).headers["ETag"] == before
