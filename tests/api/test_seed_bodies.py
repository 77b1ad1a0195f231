"""The bodies that the seeds print work as they are, and mean what they meant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from noonday.api.schemas import JobBody, JobDefaults, apply_body, job_json, to_job
from noonday.api.services import ApiServices
from noonday.domain.job import Job, JobId, MisfirePolicy, OverlapPolicy
from noonday.domain.schedule import Cron, Event, Frequency, Immediate, Interval, IntervalUnit, Once, Schedule
from tests.api.caller import Api, client_of
from tests.factories import NOON

ID = JobId("01a2d11f-0200-73d5-9c42-4282f1abc123")
URL = {"url": "https://example.com"}


def made(body: dict[str, Any], defaults: JobDefaults | None = None) -> Job:
    return to_job(JobBody.model_validate(body), ID, NOON, defaults or JobDefaults())


async def test_it_takes_the_streams_schedulers_body(api: Api) -> None:
    parent = await api.make(name="parent")
    body = {
        "source_id": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff",
        "url": "https://example.com",
        "schedule_type": "cron",
        "cron_expression": "0 */6 * * *",
        "priority": 1,
        "timeout_seconds": 7200,
        "depends_on": [parent["id"]],
        "trigger_webhook": "/sources/*/crawl",
        "trigger_channel": "content:new",
        "schedule_enabled": True,
    }
    job = await api.make(**body)
    assert {name: job[name] for name in body} == body
    assert job["name"].startswith("example.com-")
    assert job["scheduler_version"] == 2


async def test_it_takes_the_call_as_curl_sends_it(api: Api) -> None:
    body = {"source_id": "uuid", "url": "https://example.com", "schedule_type": "cron"}
    text = json.dumps({**body, "cron_expression": "0 */6 * * *"})
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await api.client.post("/api/v2/jobs", content=text, headers=form)
    assert (answer.status_code, answer.json()["next_run_at"]) == (201, "2027-01-01T18:00:00Z")


@pytest.mark.parametrize(
    ("body", "schedule"),
    [
        ({"interval_minutes": 6, "interval_type": "hours"}, Interval(count=6, unit=IntervalUnit.HOURS)),
        ({"interval_minutes": 30}, Interval(count=30)),
        ({"interval_minutes": 5, "interval_type": "seconds"}, Interval(count=5, unit=IntervalUnit.SECONDS)),
        ({"interval_minutes": 5, "after_completion": True}, Interval(count=5, after_completion=True)),
        ({"schedule_time": "0 * * * *"}, Cron(expression="0 * * * *")),
        ({"schedule_time": "0 * * * *", "interval_minutes": 30}, Interval(count=30)),
        ({"cron_expression": "0 * * * *", "interval_minutes": 30}, Interval(count=30)),
        ({"frequency": "hourly", "time_config": {"minute": 15}}, Frequency(frequency="hourly", minute=15)),
        (
            {"frequency": "daily", "time_config": {"hour": 2, "minute": 0}},
            Frequency(frequency="daily", hour=2),
        ),
        (
            {"frequency": "weekly", "time_config": {"day": "monday", "hour": 2, "minute": 0}},
            Frequency(frequency="weekly", day=1, hour=2),
        ),
        (
            {"schedule_type": "calendar", "frequency": "monthly", "time_config": {"day_of_month": 31}},
            Frequency(frequency="monthly", day_of_month=31),
        ),
        ({"frequency": "cron", "time_config": {"cron": "0 2 * * *"}}, Cron(expression="0 2 * * *")),
        ({"frequency": "cron", "time_config": {"expression": "0 2 * * *"}}, Cron(expression="0 2 * * *")),
        ({"frequency": "cron", "cron_expression": "0 2 * * *"}, Cron(expression="0 2 * * *")),
        ({"schedule_type": "cron", "cron_expression": "  0   2 * * *  "}, Cron(expression="0 2 * * *")),
        ({"schedule_type": "immediate"}, Immediate()),
        ({}, Immediate()),
        ({"trigger_webhook": "sources/*/crawl"}, Event()),
        ({"schedule_type": "event", "trigger_channel": "content:new"}, Event()),
    ],
    ids=str,
)
def test_it_reads_each_way_of_saying_when(body: dict[str, Any], schedule: Schedule) -> None:
    job = made({**URL, **body})
    assert job.timing.schedule == schedule
    again = apply_body(JobBody.model_validate(job_json(job)), job, NOON.replace(hour=20))
    assert again == job


def test_it_takes_a_time_without_offset_in_the_jobs_zone() -> None:
    job = made({**URL, "run_at": "2027-06-01T02:00", "timezone": "Europe/Berlin"})
    assert job.timing.schedule == Once(run_at=NOON.replace(month=6, hour=0))
    assert job_json(job)["run_at"] == "2027-06-01T00:00:00Z"
    other = made({**URL, "run_at": "2027-06-01T02:00:00+05:00", "timezone": "Europe/Berlin"})
    assert job_json(other)["run_at"] == "2027-05-31T21:00:00Z"


def test_it_reads_windows_in_every_form() -> None:
    windows = [
        {"start": "08:00", "end": "18:00"},
        {"days": "mon-fri, sun", "start": "22:00", "end": "24:00"},
        {"days": ["Saturday", 7], "start": "00:00:30", "end": "06:00"},
        {"days": "fri-mon", "start": "01:00", "end": "02:00"},
    ]
    shown = job_json(made({**URL, "schedule_type": "manual", "windows": windows}))["windows"]
    assert [(len(w["days"]), w["start"], w["end"]) for w in shown] == [
        (7, "08:00", "18:00"),
        (6, "22:00", "00:00"),
        (2, "00:00:30", "06:00"),
        (4, "01:00", "02:00"),
    ]


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ({"type": "fetch", "url": "https://example.com:8443/a"}, "example.com-abc123"),
        (
            {"type": "service", "service": "mail", "endpoint": "/api/jobs/weekly-digest"},
            "weekly-digest-abc123",
        ),
        ({"type": "python", "task": "app.jobs:clean_up"}, "clean_up-abc123"),
        ({"type": "command", "argv": ["/usr/bin/rsync", "-a"]}, "rsync-abc123"),
        ({"type": "command", "argv": ["***"]}, "job-abc123"),
    ],
)
def test_it_names_a_job_after_what_it_does(target: dict[str, Any], name: str) -> None:
    assert made({"target": target}).name == name


def test_it_fills_in_the_defaults_of_this_installation() -> None:
    defaults = JobDefaults(
        misfire=MisfirePolicy(coalesce=False), overlapping=OverlapPolicy(max_instances=4), scheduler_version=1
    )
    job = made(URL, defaults)
    assert (job.misfire.coalesce, job.overlapping.max_instances, job.scheduler_version) == (False, 4, 1)
    assert made({**URL, "coalesce": True, "max_instances": 2}, defaults).overlapping.max_instances == 2
    reset = apply_body(
        JobBody.model_validate({"max_instances": None}), made({**URL, "max_instances": 2}), NOON
    )
    assert reset.overlapping.max_instances == 1


async def test_it_explains_any_schedule_before_it_is_saved(sqlite_api: Api) -> None:
    body = {"cron_expression": "0 2 * * mon", "timezone": "Europe/Berlin", "count": 2}
    answer = await sqlite_api.call("POST", "/api/v2/schedules/preview", body)
    assert answer.json() == {
        "schedule_type": "cron",
        "schedule_words": "At 02:00 every Monday, Europe/Berlin",
        "timezone": "Europe/Berlin",
        "next_runs": ["2027-01-04T01:00:00Z", "2027-01-11T01:00:00Z"],
        "next_runs_local": ["2027-01-04T02:00:00+01:00", "2027-01-11T02:00:00+01:00"],
    }
    later = await sqlite_api.call("POST", "/api/v2/schedules/preview", {**body, "after": "2027-07-01"})
    assert later.json()["next_runs"][0] == "2027-07-05T00:00:00Z"
    manual = await sqlite_api.call("POST", "/api/v2/schedules/preview", {"schedule_type": "manual"})
    assert manual.json()["next_runs"] == []
    assert (await sqlite_api.get("/api/v2/jobs"))["total"] == 0


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"cron_expression": "nonsense"}, "cron_expression"),
        ({"cron_expression": "@daily", "count": 0}, "count"),
        ({"cron_expression": "@daily", "count": 101}, "count"),
        ({"cron_expression": "@daily", "url": "https://example.com"}, "url"),
        ({"cron_expression": "@daily", "timezone": "Mars/Olympus"}, "timezone"),
    ],
)
async def test_it_refuses_to_explain_nonsense(sqlite_api: Api, body: dict[str, Any], field: str) -> None:
    answer = await sqlite_api.call("POST", "/api/v2/schedules/preview", body)
    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


async def test_it_describes_itself_completely(sqlite_api: Api) -> None:
    made = await sqlite_api.get("/openapi.json")
    text = json.dumps(made)
    paths = set(made["paths"])
    assert {
        "/api/v2/jobs",
        "/api/v2/jobs/{job}",
        *(f"/api/v2/jobs/{{job}}/{verb}" for verb in ("pause", "resume", "cancel", "force-run", "retry")),
        *(f"/api/{v}/jobs/{{job}}/executions" for v in ("v1", "v2")),
        *(f"/api/{v}/executions/{{execution}}" for v in ("v1", "v2")),
        "/api/v2/executions/{execution}/cancel",
        "/api/v2/executions/{execution}/callback",
        "/api/v2/schedules/preview",
        "/api/v2/scheduler/health",
        "/health",
        "/health/live",
        "/health/ready",
    } <= paths
    for path, methods in made["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (method, path)
            good = [status for status in operation["responses"] if status.startswith("2")]
            assert good, (method, path)
            if "204" not in good:
                assert any("schema" in c for s in good for c in operation["responses"][s]["content"].values())
    known, refusals = made["components"]["schemas"], made["components"]["responses"]
    assert {ref.split("/")[-1] for ref in _refs(made)} <= known.keys() | refusals.keys()
    assert "HTTPValidationError" not in text
    assert set(JobBody.model_fields) <= set(known["JobBody"]["properties"])


def _refs(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [ref for item in value.values() for ref in _refs(item)]
    return [ref for item in value for ref in _refs(item)] if isinstance(value, list) else []


async def test_it_gives_the_health_in_the_seeds_shape(services: ApiServices) -> None:
    async with client_of(services) as client:
        health = (await client.get("/api/v2/scheduler/health")).json()
        plain = await client.get("/health")
    assert {
        "status", "running", "is_leader", "workers_active", "workers_busy", "queue_depth", "cron_jobs_count",
        "last_check_at", "uptime_seconds", "circuit_breaker_state",
    } <= health.keys()  # fmt: skip
    assert (health["status"], health["workers_active"], health["uptime_seconds"]) == ("healthy", 10, 60)
    assert (plain.status_code, plain.json()["status"]) == (200, "healthy")
