"""`?dry_run=true`: the answer tells what would change, and nothing does."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Connection, func, select

from noonday.store.tables import audit, executions, jobs
from tests.api.caller import Api


async def everything(api: Api) -> list[Any]:
    """All that a change could leave behind."""

    def look(conn: Connection) -> list[Any]:
        rows = conn.execute(select(jobs).order_by(jobs.c.id)).all()
        counts = [
            conn.execute(select(func.count()).select_from(table)).scalar() for table in (audit, executions)
        ]
        return [*map(tuple, rows), *counts]

    return await api.db.read(look)


async def dry(api: Api, method: str, path: str, body: Any = None, **more: Any) -> dict[str, Any]:
    before = await everything(api)
    answer = await api.call(method, f"{path}?dry_run=true", body, **more)
    assert answer.status_code == 200, answer.text
    assert await everything(api) == before
    shown: dict[str, Any] = answer.json()
    assert shown["dry_run"] is True
    return shown


async def test_it_tells_what_would_be_created(api: Api) -> None:
    body = {"name": "digest", "url": "https://example.com/", "cron_expression": "0 * * * *"}
    shown = await dry(api, "POST", "/api/v2/jobs", body)
    assert shown["job"]["name"] == "digest"
    assert shown["changes"] == [{"field": "job", "before": None, "after": "digest"}]
    hours = [f"2027-01-01T{hour}:00:00Z" for hour in (13, 14, 15)]
    assert shown["next_runs"] == {"before": [], "after": hours}
    assert (await api.call("GET", "/api/v2/jobs/digest")).status_code == 404


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
async def test_it_tells_what_would_change(api: Api, method: str) -> None:
    await api.make(name="digest", cron_expression="0 * * * *", tags=["a"], config={"token": "s3cr3t"})
    body = {"cron_expression": "30 12 * * *", "tags": ["b"], "priority": 2, "config": {"token": "0th3r"}}
    shown = await dry(api, method, "/api/v2/jobs/digest", body)
    assert shown["changes"] == [
        {"field": "tags", "before": ["a"], "after": ["b"]},
        {"field": "cron_expression", "before": "0 * * * *", "after": "30 12 * * *"},
        {"field": "config", "before": {"token": "********"}, "after": {"token": "********"}},
    ]
    assert shown["next_runs"]["before"][0] == "2027-01-01T13:00:00Z"
    assert shown["next_runs"]["after"][0] == "2027-01-01T12:30:00Z"
    assert shown["job"]["tags"] == ["b"]
    assert shown["job"]["revision"] == 2


async def test_it_tells_that_nothing_would_change(sqlite_api: Api) -> None:
    await sqlite_api.make(name="digest", priority=1)
    shown = await dry(sqlite_api, "PUT", "/api/v2/jobs/digest", {"priority": 1})
    assert shown["changes"] == []
    assert shown["job"]["revision"] == 1


async def test_it_tells_what_an_action_would_do(api: Api) -> None:
    await api.make(name="digest", cron_expression="0 * * * *")
    hours = [f"2027-01-01T{hour}:00:00Z" for hour in (13, 14, 15)]
    changed = {
        "pause": {"status": ["scheduled", "paused"], "is_paused": [False, True]},
        "disable": {"schedule_enabled": [True, False]},
        "enable": {},
        "cancel": {"status": ["scheduled", "cancelled"]},
    }
    for action, fields in changed.items():
        shown = await dry(api, "POST", f"/api/v2/jobs/digest/{action}")
        told = {change["field"]: [change["before"], change["after"]] for change in shown["changes"]}
        assert told == fields, action
        assert shown["next_runs"] == {"before": hours, "after": hours if action == "enable" else []}
    await api.call("POST", "/api/v2/jobs/digest/pause")
    shown = await dry(api, "POST", "/api/v2/jobs/digest/resume")
    assert shown["next_runs"] == {"before": [], "after": hours}


async def test_it_tells_what_would_be_deleted(api: Api) -> None:
    await api.make(name="digest")
    shown = await dry(api, "DELETE", "/api/v2/jobs/digest")
    assert shown["job"] is None
    assert shown["changes"] == [{"field": "job", "before": "digest", "after": None}]
    assert shown["next_runs"]["after"] == []
    assert len(shown["next_runs"]["before"]) == 3


async def test_it_wakes_nobody(sqlite_api: Api) -> None:
    await sqlite_api.make(name="digest")
    heard = sqlite_api.db.subscribe("jobs", "work", "cancel")
    await dry(sqlite_api, "POST", "/api/v2/jobs/digest/cancel")
    assert heard.told == 0
    await sqlite_api.make(name="another")
    await heard.wait()
    assert heard.told == 1


async def test_it_refuses_what_the_change_itself_would_refuse(api: Api) -> None:
    await api.make(name="digest")
    await api.make(name="needed")
    await api.make(name="needs", depends_on=["needed"])
    before = await everything(api)
    refused: list[tuple[str, str, Any, dict[str, str], int]] = [
        ("POST", "", {"name": "digest", "url": "https://a.example", "schedule_type": "manual"}, {}, 409),
        ("POST", "", {"name": "x", "url": "https://a.example", "cron_expression": "0 0 30 2 *"}, {}, 422),
        ("PUT", "/digest", {"depends_on": ["digest"]}, {}, 422),
        ("PUT", "/digest", {"priority": 1}, {"If-Match": '"7"'}, 412),
        ("PATCH", "/digest", {"priority": 9}, {}, 422),
        ("DELETE", "/needed", None, {}, 409),
        ("DELETE", "/digest", None, {"If-Match": '"7"'}, 412),
        ("POST", "/digest/resume", None, {}, 409),
        ("POST", "/digest/enable", None, {"If-Match": '"7"'}, 412),
        ("POST", "/nobody/pause", None, {}, 404),
    ]
    for method, path, body, headers, status in refused:
        for dry_run in ("true", "false"):
            answer = await api.call(method, f"/api/v2/jobs{path}?dry_run={dry_run}", body, headers=headers)
            assert answer.status_code == status, (method, path, answer.text)
    assert await everything(api) == before


async def test_it_switches_a_schedule_off_and_on(api: Api) -> None:
    await api.make(name="digest")
    off = await api.call("POST", "/api/v2/jobs/digest/disable")
    assert (off.json()["schedule_enabled"], off.json()["next_runs"], off.headers["ETag"]) == (
        False,
        [],
        '"2"',
    )
    again = await api.call("POST", "/api/v2/jobs/digest/disable")
    assert again.headers["ETag"] == '"2"'
    stale = await api.call("POST", "/api/v2/jobs/digest/enable", headers={"If-Match": '"1"'})
    assert stale.status_code == 412
    on = await api.call("POST", "/api/v2/jobs/digest/enable", headers={"If-Match": '"2"'})
    assert (on.json()["schedule_enabled"], on.json()["next_run_at"]) == (True, "2027-01-01T13:00:00Z")
