"""`POST /api/v2/jobs/bulk`: a preview, then the same for real; each role within its rights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from starlette.datastructures import Headers

from noonday.api.bulk import BulkDone, BulkPreview
from noonday.api.services import ApiServices
from noonday.domain.access import Caller, Role
from tests.api.caller import Api, client_of

BULK = "/api/v2/jobs/bulk"


async def test_it_shows_the_jobs_and_then_changes_them(api: Api) -> None:
    made = []
    for n in range(3):
        made.append(await api.make(name=f"job {n}", tags=["nightly"]))
        api.clock.advance(seconds=1)
    await api.make(name="other")
    body = {"action": "pause", "filter": "tag:nightly"}
    for ask in ({**body, "dry_run": True}, body):
        path = BULK if "dry_run" in ask else f"{BULK}?dry_run=true"
        seen = await api.call("POST", path, ask)
        assert seen.status_code == 200, seen.text
        preview = BulkPreview.model_validate(seen.json())
        assert (preview.matched, [job.job_id for job in preview.jobs]) == (3, [job["id"] for job in made])
    assert (await api.get("/api/v2/jobs?q=paused:yes"))["total"] == 0

    answer = await api.call("POST", BULK, {**body, "expect": 3})
    assert answer.json() == {
        "dry_run": False, "action": "pause", "matched": 3, "done": 3, "unchanged": 0, "failed": [],
    }  # fmt: skip
    BulkDone.model_validate(answer.json())
    assert (await api.get("/api/v2/jobs?q=paused:yes"))["total"] == 3


async def test_it_tells_which_failed_and_why(api: Api) -> None:
    busy = await api.make(name="busy")
    await api.make(name="free")
    await api.call("POST", "/api/v2/jobs/busy/force-run")
    answer = await api.call("POST", BULK, {"action": "pause", "jobs": ["busy", "free", "nobody"]})
    shown = answer.json()
    assert (answer.status_code, shown["matched"], shown["done"]) == (200, 2, 1)
    told = {failure["name"]: failure["job_id"] for failure in shown["failed"]}
    assert told == {"busy": busy["id"], "nobody": None}


@pytest.mark.parametrize(
    ("body", "status", "field"),
    [
        ({"action": "pause"}, 422, "filter"),
        ({"action": "pause", "filter": " "}, 422, "filter"),
        ({"action": "pause", "filter": "stauts:x"}, 422, "filter"),
        ({"action": "pause", "filter": "tag:x", "all": True}, 422, "filter"),
        ({"action": "pause", "filter": "tag:x", "jobs": ["a"]}, 422, "filter"),
        ({"action": "explode", "filter": "tag:x"}, 422, "action"),
        ({"filter": "tag:x"}, 422, "action"),
        ({"action": "pause", "jobs": ["a"] * 1001}, 422, "jobs"),
        ({"action": "pause", "jobs": ["a\nb"]}, 422, "jobs[0]"),
        ({"action": "pause", "filter": "x" * 1001}, 422, "filter"),
        ({"action": "pause", "filter": "tag:x", "expect": -1}, 422, "expect"),
        ({"action": "pause", "filter": "tag:x", "colour": "red"}, 422, "colour"),
        ({"action": "pause", "filter": 7}, 422, "filter"),
    ],
    ids=str,
)
async def test_it_refuses_what_is_not_clear(
    sqlite_api: Api, body: dict[str, Any], status: int, field: str
) -> None:
    await sqlite_api.make(name="digest")
    answer = await sqlite_api.call("POST", BULK, body)
    assert answer.status_code == status, answer.text
    assert answer.json()["errors"][0]["field"] == field


async def test_it_does_nothing_if_another_number_matches(sqlite_api: Api) -> None:
    await sqlite_api.make(name="digest")
    answer = await sqlite_api.call("POST", BULK, {"action": "delete", "all": True, "expect": 2})
    assert answer.status_code == 409
    assert (await sqlite_api.get("/api/v2/jobs"))["total"] == 1
    gone = await sqlite_api.call("POST", BULK, {"action": "delete", "all": True, "expect": 1})
    assert gone.json()["done"] == 1


async def test_it_keeps_each_role_within_its_rights(services: ApiServices, api: Api) -> None:
    target = {"type": "service", "service": "email", "endpoint": "/x"}
    await api.make(name="mine", target=target)
    await api.make(name="other", target=target | {"service": "billing"})
    may = {
        Role.VIEWER: set[str](),
        Role.SERVICE: {"run"},
        Role.OPERATOR: {"run", "pause", "delete"},
        Role.ADMIN: {"run", "pause", "delete"},
    }
    here = Caller(name="x", role=Role.VIEWER)

    async def caller(_: Headers) -> Caller | None:
        return here

    async with client_of(replace(services, identify=caller)) as client:
        for role, allowed in may.items():
            here = Caller(name="x", role=role, service="email" if role is Role.SERVICE else None)
            for action in ("run", "pause", "delete"):
                answer = await client.post(BULK, json={"action": action, "all": True, "dry_run": True})
                assert answer.status_code == (200 if action in allowed else 403), (role, action)
                if answer.status_code == 200:
                    assert answer.json()["matched"] == (1 if role is Role.SERVICE else 2)
