"""Figures, times to come and the spread of the load over HTTP."""

from __future__ import annotations

from typing import Any

import pytest

from noonday.api.figures import (
    CountsShape,
    DayShape,
    ExpectedShape,
    ForecastShape,
    JobStatsShape,
    OverallStatsShape,
    UpcomingShape,
)
from noonday.api.services import ApiServices
from noonday.api.shapes import ExecutionShape
from noonday.control.system import LocalStatus
from noonday.domain.access import Caller, Role
from noonday.domain.outcome import Completed, Failed, Outcome
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, client_of
from tests.factories import NOON

EMAIL = {"target": {"type": "service", "service": "email", "endpoint": "/x"}}
MAILER = Caller(name="mailer", role=Role.SERVICE, service="email")


async def ran(api: Api, job: str, outcome: Outcome, seconds: float = 2) -> None:
    await api.call("POST", f"/api/v2/jobs/{job}/force-run")
    (run,) = await api.claim()
    api.clock.advance(seconds=seconds)
    await api.end(run, outcome)


def names(shape: Any) -> set[str]:
    return {field.alias or name for name, field in shape.model_fields.items()}


async def test_it_tells_how_a_job_fares(api: Api) -> None:
    job = await api.make(name="crawl", max_retries=0)
    await ran(api, "crawl", Completed(), 1)
    api.clock.advance(days=1)
    for outcome, seconds in ((Completed(), 3), (Failed(error="no"), 60), (Completed(), 2)):
        await ran(api, "crawl", outcome, seconds)
    seen = await api.get("/api/v2/jobs/crawl/stats")
    assert seen.keys() == names(JobStatsShape)
    assert (seen["job_id"], seen["job_name"]) == (job["id"], "crawl")
    assert (seen["days"], seen["since"], seen["partial"]) == (None, None, False)
    assert seen["executions"].keys() == names(CountsShape)
    assert {n: v for n, v in seen["executions"].items() if v} == {"total": 4, "completed": 3, "failed": 1}
    assert seen["success_rate"] == 0.75
    assert seen["duration_ms"] == {"average": 2000, "p50": 2000, "p95": 3000, "p99": 3000, "max": 3000}
    assert seen["last_execution"].keys() == names(ExecutionShape)
    assert (seen["last_execution"]["status"], seen["last_execution"]["execution_number"]) == ("completed", 4)
    assert seen["by_day"][0].keys() == names(DayShape)
    days = [
        (one["day"], one["completed"], one["failed"], one["average_duration_ms"]) for one in seen["by_day"]
    ]
    assert days == [("2027-01-01", 1, 0, 1000), ("2027-01-02", 2, 1, 2500)]


async def test_it_looks_at_the_last_days_without_a_gap(api: Api) -> None:
    await api.make(name="crawl")
    await ran(api, "crawl", Completed())
    api.clock.advance(days=3)
    await ran(api, "crawl", Completed())
    for path in ("/api/v2/jobs/crawl/stats", "/api/v2/stats"):
        seen = await api.get(path, params={"days": 4})
        assert (seen["since"], seen["until"]) == ("2027-01-01T00:00:00Z", "2027-01-04T12:00:04Z")
        assert [one["completed"] for one in seen["by_day"]] == [1, 0, 0, 1]
        assert [one["success_rate"] for one in seen["by_day"]] == [1, None, None, 1]
        fewer = await api.get(path, params={"days": 3})
        assert [one["completed"] for one in fewer["by_day"]] == [0, 0, 1]
        assert fewer["executions"]["completed"] == 1


async def test_it_tells_how_all_jobs_fare(api: Api) -> None:
    empty = await api.get("/api/v2/stats")
    assert empty.keys() == names(OverallStatsShape)
    assert (empty["days"], len(empty["by_day"]), empty["success_rate"]) == (30, 30, None)
    assert (empty["duration_ms"], empty["last_execution"], empty["next_run_at"]) == (None, None, None)
    await api.make(name="crawl")
    await api.make(name="mail", max_retries=0, cron_expression="30 * * * *", **EMAIL)
    await ran(api, "crawl", Completed())
    await ran(api, "mail", Failed(error="no"))
    seen = await api.get("/api/v2/stats", params={"days": 1})
    assert (seen["executions"]["completed"], seen["executions"]["failed"]) == (1, 1)
    assert (seen["jobs"]["scheduled"], seen["next_run_at"]) == (2, "2027-01-01T12:30:00Z")
    assert seen["last_execution"]["error_message"] == "no"


async def test_it_shows_a_service_its_own_jobs_alone(db: Database, clock: StillClock) -> None:
    status = LocalStatus(instance_id="one", started_at=NOON)

    async def identify(scope: Any) -> Caller:
        return MAILER

    async with client_of(ApiServices(db=db, clock=clock, status=lambda: status)) as client:
        api = Api(client, db, clock)
        await api.make(name="crawl")
        await api.make(name="mail", cron_expression="30 * * * *", **EMAIL)
        await ran(api, "crawl", Completed())
    services = ApiServices(db=db, clock=clock, status=lambda: status, identify=identify)
    async with client_of(services) as client:
        own = Api(client, db, clock)
        stats = await own.get("/api/v2/stats")
        assert (stats["executions"]["total"], stats["jobs"]["scheduled"]) == (0, 1)
        assert (stats["last_execution"], stats["next_run_at"]) == (None, "2027-01-01T12:30:00Z")
        forecast = await own.get("/api/v2/forecast")
        assert {run["job_name"] for run in forecast["runs"]} == {"mail"}
        assert (await own.get("/api/v2/scheduler/distribution"))["jobs"] == 1
        assert (await own.get("/api/v1/scheduler/metrics"))["executions"]["total"] == 0
        assert [job["name"] for job in (await own.get("/api/v1/jobs"))["jobs"]] == ["mail"]
        for path in ("jobs/crawl/stats", "jobs/crawl/upcoming"):
            assert (await own.call("GET", f"/api/v2/{path}")).status_code == 404
        assert (await own.call("POST", "/api/v2/scheduler/rebalance")).status_code == 403


async def test_it_tells_when_a_job_will_run(sqlite_api: Api) -> None:
    api = sqlite_api
    await api.make(name="digest", cron_expression="0 2 * * *", timezone="Europe/Berlin")
    seen = await api.get("/api/v2/jobs/digest/upcoming", params={"count": 2})
    assert seen.keys() == names(UpcomingShape)
    assert seen["next_runs"] == ["2027-01-02T01:00:00Z", "2027-01-03T01:00:00Z"]
    assert seen["next_runs_local"][0] == "2027-01-02T02:00:00+01:00"
    assert (seen["more"], seen["schedule_words"]) == (True, "At 02:00 every day, Europe/Berlin")
    until = await api.get("/api/v2/jobs/digest/upcoming", params={"until": "2027-01-04T01:00:00Z"})
    assert (len(until["next_runs"]), until["more"]) == (3, False)
    spring = await api.get("/api/v2/jobs/digest/upcoming", params={"count": 1000})
    assert spring["next_runs_local"][85:87] == ["2027-03-28T03:00:00+02:00", "2027-03-29T02:00:00+02:00"]
    await api.call("POST", "/api/v2/jobs/digest/pause")
    paused = await api.get("/api/v2/jobs/digest/upcoming")
    assert (paused["next_runs"], paused["more"], paused["status"]) == ([], False, "paused")


async def test_it_forecasts_what_will_run(api: Api) -> None:
    await api.make(name="hourly", priority=1)
    await api.make(name="half", cron_expression="*/30 * * * *")
    await api.make(name="paused")
    await api.call("POST", "/api/v2/jobs/paused/pause")
    await ran(api, "half", Completed(), 90)
    seen = await api.get("/api/v2/forecast", params={"to": "2027-01-01T13:30:00Z"})
    assert seen.keys() == names(ForecastShape)
    assert (seen["from"], seen["to"], seen["more"]) == ("2027-01-01T12:01:30Z", "2027-01-01T13:30:00Z", False)
    assert all(run.keys() == names(ExpectedShape) for run in seen["runs"])
    runs = [(run["job_name"], run["at"][11:16], run["expected_end_at"]) for run in seen["runs"]]
    assert sorted(runs, key=lambda run: run[1:2]) == runs
    assert sorted(runs) == [
        ("half", "12:30", "2027-01-01T12:31:30Z"),
        ("half", "13:00", "2027-01-01T13:01:30Z"),
        ("half", "13:30", "2027-01-01T13:31:30Z"),
        ("hourly", "13:00", None),
    ]
    assert seen["runs"][0]["expected_duration_ms"] == 90_000
    past = await api.get("/api/v2/forecast", params={"from": "2027-01-01", "to": "2027-01-01T13:30:00Z"})
    assert past == seen  # what has passed is history
    few = await api.get("/api/v2/forecast", params={"limit": 2})
    assert (len(few["runs"]), few["more"]) == (2, True)
    later = {"from": "2027-12-24T00:00:00+01:00", "to": "2027-12-24T00:59:00+01:00"}
    far = await api.get("/api/v2/forecast", params=later)
    assert sorted((run["job_name"], run["at"]) for run in far["runs"]) == [
        ("half", "2027-12-23T23:00:00Z"),
        ("half", "2027-12-23T23:30:00Z"),
        ("hourly", "2027-12-23T23:00:00Z"),
    ]


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("jobs/crawl/stats", {"days": "0"}, "days"),
        ("jobs/crawl/stats", {"days": "99999999999999999999"}, "days"),
        ("stats", {"days": "x"}, "days"),
        ("jobs/crawl/upcoming", {"count": "1001"}, "count"),
        ("jobs/crawl/upcoming", {"until": "soon"}, "until"),
        ("jobs/crawl/upcoming", {"until": "0001-01-01T00:00:00+14:00"}, "until"),
        ("jobs/crawl/upcoming", {"unknown": "1"}, "unknown"),
        ("forecast", {"from": "2029-01-01"}, "from"),
        ("forecast", {"from": "9999-12-31T23:59:59-14:00"}, "from"),
        ("forecast", {"to": "2026-12-31"}, "to"),
        ("forecast", {"to": "2027-03-01"}, "to"),
        ("forecast", {"limit": "1001"}, "limit"),
        ("scheduler/distribution", {"slot_minutes": "7"}, "slot_minutes"),
        ("scheduler/distribution", {"slot_minutes": "0"}, "slot_minutes"),
    ],
)
async def test_it_refuses_questions_without_an_answer(
    sqlite_api: Api, path: str, query: dict[str, str], field: str
) -> None:
    await sqlite_api.make(name="crawl")
    answer = await sqlite_api.call("GET", f"/api/v2/{path}", params=query)
    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == field
