"""Recurring jobs as schedulers: states, health with its 503, and the six actions."""

from __future__ import annotations

from typing import Any

import pytest

from noonday.api.dialects.admin import ActionAnswer, SchedulerPage, SchedulersHealth
from noonday.api.services import ApiServices
from noonday.control import schedulers
from noonday.domain.outcome import Completed, Failed
from tests.api.caller import Api
from tests.api.people import bearer, claims, closed, token

PATH = "/api/admin/schedulers"


async def health(api: Api, status: int = 200, **more: Any) -> dict[str, Any]:
    answer = await api.call("GET", f"{PATH}/health", **more)
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def act(api: Api, action: str, name: str, status: int = 200) -> dict[str, Any]:
    answer = await api.call("POST", PATH, {"action": action, "schedulerId": name})
    assert answer.status_code == status, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def run(api: Api, name: str, outcome: Completed | Failed) -> None:
    api.clock.advance(seconds=1)
    await api.call("POST", f"/api/v2/jobs/{name}/force-run")
    for execution in await api.claim():
        await api.end(execution, outcome)


async def fail(api: Api, name: str) -> None:
    await run(api, name, Failed(error="no", retryable=False))


async def test_it_answers_in_the_seeds_form(api: Api) -> None:
    nothing = await health(api)
    assert (nothing["healthy"], nothing["schedulers"]) == (True, {"total": 0, "running": 0, "errors": 0})
    await api.make(name="csv-import", metadata={"display_name": "CSV Import Scheduler", "critical": True})
    await api.make(name="by-hand", schedule_type="manual")
    await api.make(name="every-six", interval_minutes=6)
    await api.make(name="nightly", frequency="daily")
    await run(api, "csv-import", Completed())
    found = await health(api)
    SchedulersHealth.model_validate(found, strict=False)
    assert found == {
        "healthy": True,
        "status": "healthy",
        "timestamp": "2027-01-01T12:00:01Z",
        "schedulers": {"total": 3, "running": 3, "errors": 0},
        "details": {
            "csv-import": {"status": "RUNNING", "healthy": True, "lastSuccess": "2027-01-01T12:00:01Z"},
            "every-six": {"status": "RUNNING", "healthy": True, "lastSuccess": None},
            "nightly": {"status": "RUNNING", "healthy": True, "lastSuccess": None},
        },
        "truncated": False,
    }
    page = await api.get(PATH, params={"limit": 1})
    SchedulerPage.model_validate(page, strict=False)
    assert (page["total"], page["limit"], page["offset"]) == (3, 1, 0)
    (shown,) = page["schedulers"]
    assert (shown["id"], shown["name"], shown["critical"]) == ("csv-import", "CSV Import Scheduler", True)
    assert (shown["autoStart"], shown["lastStatus"]) == (True, "completed")
    assert (await api.call("GET", PATH, params={"limit": 201})).status_code == 422


async def test_each_state_follows_from_the_job(api: Api) -> None:
    for name in ("off", "held", "bad", "gone", "good"):
        await api.make(name=name)
    for name in ("off", "held", "bad"):
        await fail(api, name)
    await api.call("PUT", "/api/v2/jobs/off", {"schedule_enabled": False})
    await api.call("POST", "/api/v2/jobs/held/pause")
    await api.call("POST", "/api/v2/jobs/gone/cancel")
    found = await health(api)
    assert {name: (one["status"], one["healthy"]) for name, one in found["details"].items()} == {
        "bad": ("ERROR", False),
        "gone": ("STOPPED", True),
        "good": ("RUNNING", True),
        "held": ("PAUSED", True),
        "off": ("STOPPED", True),
    }
    assert (found["status"], found["schedulers"]) == ("degraded", {"total": 5, "running": 1, "errors": 1})
    await run(api, "bad", Completed())
    assert (await health(api))["status"] == "healthy"


async def test_it_is_unwell_while_a_critical_one_is_down(api: Api) -> None:
    for number, critical in enumerate([True, False, "no", None, {"of": "course"}]):
        counts, name = critical is True, f"job-{number}"
        await api.make(name=name, metadata={"critical": critical})
        await fail(api, name)
        found = await health(api, 503 if counts else 200)
        assert (found["healthy"], found["status"]) == (not counts, "unhealthy" if counts else "degraded")
        await run(api, name, Completed())
        assert (await health(api))["status"] == "healthy"
        await act(api, "stop", name)
        await health(api, 503 if counts else 200)
        await act(api, "start", name)
        await act(api, "pause", name)
        await health(api)


async def test_the_worst_come_first_where_not_all_are_shown(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c", "d"):
        await api.make(name=name, metadata={"critical": name in "bd"})
    await fail(api, "c")
    await fail(api, "d")
    for most, names in ((3, "dcb"), (1, "d"), (4, "dcba")):
        monkeypatch.setattr(schedulers, "MOST_SHOWN", most)
        found = await health(api, 503)
        assert "".join(found["details"]) == names
        assert (found["truncated"], found["schedulers"]["total"]) == (most < 4, 4)


async def test_it_starts_stops_pauses_and_resumes(api: Api) -> None:
    await api.make(name="beat")
    steps = [
        ("pause", "PAUSED", "beat was paused"),
        ("pause", "PAUSED", "beat was paused already"),
        ("resume", "RUNNING", "beat was resumed"),
        ("resume", "RUNNING", "beat was not paused"),
        ("stop", "STOPPED", "beat was stopped"),
        ("stop", "STOPPED", "beat was stopped already"),
        ("start", "RUNNING", "beat was started"),
        ("start", "RUNNING", "beat was started already"),
        ("pause", "PAUSED", "beat was paused"),
        ("stop", "STOPPED", "beat was stopped"),
        ("restart", "RUNNING", "beat was restarted"),
    ]
    for action, status, message in steps:
        api.clock.advance(seconds=1)
        done = await act(api, action, "beat")
        ActionAnswer.model_validate(done, strict=False)
        assert (done["scheduler"]["status"], done["message"]) == (status, message)
        assert (done["success"], done["executionId"]) == (True, None)
        assert (done["scheduler"]["nextRun"] is not None) == (status == "RUNNING")
    job = await api.get("/api/v2/jobs/beat")
    assert (job["status"], job["is_paused"], job["schedule_enabled"]) == ("scheduled", False, True)


async def test_it_triggers_one_and_restarts_what_failed(api: Api) -> None:
    await api.make(name="beat")
    done = await act(api, "trigger", "beat")
    (execution,) = await api.claim()
    assert (done["executionId"], done["message"]) == (execution.id, "beat runs now")
    assert (await act(api, "trigger", "beat", 409))["current"] == "running"
    await api.end(execution, Failed(error="no", retryable=False))
    api.clock.advance(seconds=1)
    again = await act(api, "restart", "beat")
    assert "its last run failed" in again["message"]
    (execution,) = await api.claim()
    assert again["executionId"] == execution.id
    quiet = await act(api, "restart", "beat")
    assert quiet["executionId"] is None
    await api.end(execution, Completed())
    assert (await health(api))["details"]["beat"]["status"] == "RUNNING"


async def test_it_refuses_what_cannot_be(sqlite_api: Api) -> None:
    api = sqlite_api
    await api.make(name="by-hand", schedule_type="manual")
    await api.make(name="gone")
    await api.call("POST", "/api/v2/jobs/gone/cancel")
    for name in ("nothing", "by-hand"):
        assert "error" in await act(api, "start", name, 404)
    for action in ("start", "stop", "restart", "pause"):
        await act(api, action, "gone", 409)
    for body, field in (
        ({"action": "explode", "schedulerId": "gone"}, "action"),
        ({"action": "START", "schedulerId": "gone"}, "action"),
        ({"schedulerId": "gone"}, "action"),
        ({"action": "start"}, "schedulerId"),
        ({"action": "start", "schedulerId": ""}, "schedulerId"),
        ({"action": "start", "schedulerId": 7}, "schedulerId"),
        ({"action": "start", "schedulerId": "gone", "force": True}, "force"),
    ):
        answer = await api.call("POST", PATH, body)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), answer.text
    for other in ("scheduler", "id", "scheduler_id"):
        answer = await api.call("POST", PATH, {"action": "resume", other: "gone"})
        assert answer.status_code == 200, answer.text


async def test_roles_do_what_they_may(services: ApiServices) -> None:
    people = {
        "admin": bearer(token(claims(role="admin"))),
        "viewer": bearer(token(claims(role="viewer"))),
        "email": bearer(token(claims(role="service", service="email-service"))),
        "other": bearer(token(claims(role="service", service="other-service"))),
    }
    async with closed(services) as api:
        target = {"type": "service", "service": "email-service", "endpoint": "/x"}
        body = {"name": "own", "cron_expression": "0 * * * *", "target": target}
        made = await api.call("POST", "/api/v2/jobs", body, headers=people["admin"])
        assert made.status_code == 201, made.text

        async def tried(who: str, action: str) -> int:
            sent = {"action": action, "schedulerId": "own"}
            return (await api.call("POST", PATH, sent, headers=people[who])).status_code

        assert (await tried("viewer", "trigger"), await tried("viewer", "stop")) == (403, 403)
        assert (await tried("email", "stop"), await tried("email", "trigger")) == (403, 200)
        assert (await tried("other", "trigger"), await tried("admin", "stop")) == (404, 200)
        seen = {
            name: len((await health(api, headers=headers))["details"]) for name, headers in people.items()
        }
        assert seen == {"admin": 1, "viewer": 1, "email": 1, "other": 0}
        listed = await api.get(PATH, headers=people["other"])
        assert (listed["schedulers"], listed["total"]) == ([], 0)
        assert (await api.call("GET", PATH)).status_code == 401
