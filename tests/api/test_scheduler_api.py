"""The scheduler as a whole over HTTP: instances, workers, drain and resume, figures, two engines."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.domain.job import JobState
from noonday.domain.outcome import Completed
from noonday.store import audit, instances
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, client_of
from tests.control.peers import an_instance, elect, enter
from tests.factories import NOON

SCHEDULER = "/api/v2/scheduler"


async def wanted(db: Database, name: str) -> str:
    return await db.read(lambda conn: instances.wanted(conn, name))


async def test_it_lists_instances_with_the_leader(api: Api) -> None:
    await enter(
        api.db, an_instance("one", url="http://one:8060", version="1.0"), an_instance("two", "worker")
    )
    await elect(api.db, "one")
    api.clock.advance(seconds=3)
    found = await api.get(f"{SCHEDULER}/instances")
    assert found["leader"] == {"id": "one", "term": 1}
    first, second = found["instances"]
    assert first == {
        "id": "one",
        "host": "host",
        "pid": 1,
        "roles": ["api", "scheduler", "worker"],
        "state": "running",
        "is_leader": True,
        "road": "database",
        "slots": 10,
        "busy": 0,
        "url": "http://one:8060",
        "started_at": "2027-01-01T12:00:00Z",
        "heartbeat_at": "2027-01-01T12:00:00Z",
        "heartbeat_age_seconds": 3.0,
        "version": "1.0",
    }
    assert (second["is_leader"], second["url"]) == (False, None)


async def test_it_tells_of_all_workers(api: Api) -> None:
    await enter(api.db, an_instance("worker-1"), an_instance("two", "worker", state="draining"))
    job = await api.make()
    await api.call("POST", f"/api/v2/jobs/{job['id']}/force-run")
    waiting = await api.get(f"{SCHEDULER}/workers")
    assert (waiting["queue_size"], waiting["active"]) == (1, 0)
    await api.claim()
    found = await api.get(f"{SCHEDULER}/workers")
    assert set(found) == {"total", "active", "idle", "draining", "workers", "queue_size"}
    assert [found[name] for name in ("total", "active", "idle", "draining", "queue_size")] == [
        20,
        1,
        9,
        10,
        0,
    ]
    assert {one["id"]: one["busy"] for one in found["workers"]} == {"worker-1": 1, "two": 0}


@pytest.mark.parametrize("how", [{"params": {"instance": "two"}}, {"json": {"instance": "two"}}], ids=str)
async def test_it_drains_and_resumes_one(api: Api, how: dict[str, Any]) -> None:
    await enter(api.db, an_instance("one"), an_instance("two"))
    answer = await api.client.post(f"{SCHEDULER}/drain", **how)
    assert answer.status_code == 202
    assert [(one["id"], one["state"]) for one in answer.json()["instances"]] == [("two", "draining")]
    assert [await wanted(api.db, name) for name in ("one", "two")] == ["running", "draining"]
    answer = await api.client.post(f"{SCHEDULER}/resume", **how)
    assert answer.status_code == 202
    assert await wanted(api.db, "two") == "running"
    entries = await api.db.read(lambda conn: audit.page(conn, "two"))
    assert {entry.action for entry in entries.items} == {"drain", "resume"}


async def test_it_drains_all(api: Api) -> None:
    await enter(api.db, an_instance("one"), an_instance("two", "worker"), an_instance("api", "api"))
    answer = await api.call("POST", f"{SCHEDULER}/drain")
    assert (answer.status_code, len(answer.json()["instances"])) == (202, 2)
    assert len((await api.call("POST", f"{SCHEDULER}/resume", {})).json()["instances"]) == 2


async def test_it_knows_no_other_instance(api: Api) -> None:
    for verb in ("drain", "resume"):
        answer = await api.call("POST", f"{SCHEDULER}/{verb}?instance=nobody")
        assert (answer.status_code, answer.json()["error"]) == (404, "there is no instance 'nobody'")
    assert (await api.call("POST", f"{SCHEDULER}/drain", {"who": "x"})).status_code == 422


async def test_its_health_names_the_leader_of_all_and_the_road(
    services: ApiServices, db: Database, clock: StillClock
) -> None:
    await elect(db, "another")
    local = LocalStatus(instance_id="here", started_at=NOON, is_leader=False, draining=True, road="streams")
    async with client_of(replace(services, status=lambda: local)) as client:
        health = (await client.get(f"{SCHEDULER}/health")).json()
        ready = await client.get("/health/ready")
    assert (health["status"], health["is_leader"], health["road"]) == ("draining", False, "streams")
    assert health["leader"] == {"id": "another", "term": 1}
    assert ready.status_code == 200  # it still answers: somebody must be able to say resume


async def test_it_sums_itself_up(api: Api) -> None:
    one = await api.make(scheduler_version=1, priority=1)
    await api.make()
    await api.call("POST", f"/api/v2/jobs/{one['id']}/force-run")
    [run] = await api.claim()
    api.clock.advance(seconds=2)
    await api.end(run, Completed())
    await api.call("POST", f"/api/v2/jobs/{one['id']}/force-run")
    found = await api.get(f"{SCHEDULER}/metrics")
    assert set(found["jobs"]) == {state.value for state in JobState}
    assert sum(found["jobs"].values()) == 2
    runs = found["executions"]
    assert (runs["completed"], runs["waiting"], runs["success_rate"]) == (1, 1, 1.0)
    assert runs["average_duration_ms"] == 2000
    assert found["queue_depth_by_priority"] == {"high": 1, "normal": 0, "low": 0}
    assert [(each["scheduler_version"], each["jobs"], each["completed"]) for each in found["engines"]] == [
        (1, 1, 1),
        (2, 1, 0),
    ]
    api.clock.advance(hours=30)
    assert (await api.get(f"{SCHEDULER}/metrics?hours=48"))["executions"]["completed"] == 1
    assert (await api.get(f"{SCHEDULER}/metrics"))["executions"]["completed"] == 0


async def test_a_put_moves_a_job_with_what_waits(api: Api) -> None:
    job = await api.make(scheduler_version=1)
    await api.call("POST", f"/api/v2/jobs/{job['id']}/force-run")
    answer = await api.call("PUT", f"/api/v2/jobs/{job['id']}", {"scheduler_version": 2})
    assert (answer.status_code, answer.json()["scheduler_version"]) == (200, 2)
    assert answer.json()["next_run_at"] == job["next_run_at"]
    [figures] = [each for each in (await api.get(f"{SCHEDULER}/engine"))["engines"] if each["waiting"]]
    assert (figures["scheduler_version"], figures["jobs"]) == (2, 1)


async def test_it_moves_jobs_and_ends_the_migration(api: Api) -> None:
    await api.make(name="a", scheduler_version=1, tags=["red"])
    await api.make(name="b", scheduler_version=1)
    refused = await api.call("POST", f"{SCHEDULER}/engine/finish")
    assert refused.status_code == 409
    assert "2 jobs are still of version 1" in refused.json()["error"]
    dry = await api.call("POST", f"{SCHEDULER}/engine/move", {"to": 2, "tag": "red", "dry_run": True})
    assert dry.json() == {"to": 2, "count": 1, "jobs": ["a"], "dry_run": True}
    moved = await api.call("POST", f"{SCHEDULER}/engine/move", {"to": 2, "all": True})
    assert (moved.status_code, moved.json()["count"]) == (200, 2)
    status = await api.get(f"{SCHEDULER}/engine?hours=1")
    assert (status["verdict"], status["finished_at"]) == (
        "no job is left on version 1: the migration can be finished",
        None,
    )
    done = await api.call("POST", f"{SCHEDULER}/engine/finish")
    assert (done.status_code, done.json()["finished_at"]) == (200, "2027-01-01T12:00:00Z")
    back = await api.call("POST", f"{SCHEDULER}/engine/move", {"to": 1, "jobs": ["a"]})
    assert back.status_code == 409
    undone = await api.call("POST", f"{SCHEDULER}/engine/finish", {"undo": True})
    assert undone.json()["finished_at"] is None
    assert (await api.call("POST", f"{SCHEDULER}/engine/move", {"to": 1, "jobs": ["a"]})).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"to": 2}, 422),
        ({"to": 3, "all": True}, 422),
        ({"all": True}, 422),
        ({"to": 2, "all": True, "tag": "x"}, 422),
        ({"to": 2, "jobs": ["nobody"]}, 404),
        ({"to": 2, "jobs": ["x"] * 1001}, 422),
        ({"to": 2, "all": True, "more": 1}, 422),
    ],
    ids=lambda given: str(given)[:40],
)
async def test_it_refuses_a_wrong_move(sqlite_api: Api, body: dict[str, Any], status: int) -> None:
    answer = await sqlite_api.call("POST", f"{SCHEDULER}/engine/move", body)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("hours", ["0", "-1", "x", "9e9", "nan"])
async def test_it_refuses_a_wrong_time(sqlite_api: Api, hours: str) -> None:
    for where in ("engine", "metrics"):
        answer = await sqlite_api.call("GET", f"{SCHEDULER}/{where}?hours={hours}")
        assert answer.status_code == 422, answer.text


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "instances"),
        ("GET", "workers"),
        ("GET", "metrics"),
        ("GET", "engine"),
        ("POST", "drain"),
        ("POST", "resume"),
        ("POST", "engine/finish"),
    ],
)
async def test_it_says_what_to_set_where_version_2_is_off(
    sqlite_db: Database, clock: StillClock, method: str, path: str
) -> None:
    status = LocalStatus(instance_id="x", started_at=NOON - timedelta(minutes=1))
    services = ApiServices(db=sqlite_db, clock=clock, status=lambda: status, v2_enabled=False)
    async with client_of(services) as client:
        answer = await client.request(method, f"{SCHEDULER}/{path}")
    assert answer.status_code == 503
    assert "SCHEDULER_V2_ENABLED=true" in answer.json()["error"]
