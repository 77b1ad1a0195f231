"""How often one caller may start something: refused in time, told when to come back, nobody else harmed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from starlette.datastructures import Headers

from noonday.api.door import rates
from noonday.api.door.rates import Rates, starts_something
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.domain.access import Caller, Role
from noonday.domain.rates import Rate
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, client_of
from tests.factories import NOON


async def by_header(headers: Headers) -> Caller | None:
    return Caller(name=headers.get("x-who", "ada"), role=Role.OPERATOR)


@pytest.fixture
async def limited(sqlite_db: Database, clock: StillClock) -> AsyncIterator[Api]:
    """Two starts in a minute."""
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    services = ApiServices(db=sqlite_db, clock=clock, status=lambda: status, identify=by_header)
    async with client_of(replace(services, trigger_rate=Rate(calls=2))) as client:
        api = Api(client, sqlite_db, clock)
        await api.make(name="often", schedule_type="manual", overlap="allow")
        yield api


async def start(api: Api, **headers: str) -> tuple[int, str]:
    answer = await api.call("POST", "/api/v2/jobs/often/force-run", headers=headers)
    return answer.status_code, answer.headers["RateLimit"]


async def test_it_refuses_what_is_too_much_and_says_when_to_come_back(limited: Api) -> None:
    assert await start(limited) == (202, '"triggers";r=1;t=30')
    assert await start(limited) == (202, '"triggers";r=0;t=60')
    refused = await limited.call("POST", "/api/v2/jobs/often/force-run")
    assert refused.status_code == 429
    assert refused.headers["Retry-After"] == "30"
    assert refused.headers["RateLimit-Policy"] == '"triggers";q=2;w=60'
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert refused.json()["error"] == "too many starts: 2 in 60 seconds are allowed; try again in 30 s"
    assert (await limited.get("/api/v2/jobs/often/executions"))["total"] == 2
    limited.clock.advance(seconds=29)
    assert (await start(limited))[0] == 429
    limited.clock.advance(seconds=1)
    assert (await start(limited))[0] == 202


async def test_it_counts_for_each_caller_alone(limited: Api) -> None:
    for _ in range(3):
        await start(limited)
    assert (await start(limited))[0] == 429
    assert (await start(limited, **{"X-Who": "bob"}))[0] == 202


async def test_it_counts_nothing_else(limited: Api) -> None:
    for _ in range(3):
        assert (await limited.call("POST", "/api/v2/jobs/often/pause")).status_code == 200
        resumed = await limited.call("POST", "/api/v2/jobs/often/resume")
        assert resumed.status_code == 200
        assert "RateLimit" not in resumed.headers
        assert (await limited.call("GET", "/api/v2/jobs/often")).status_code == 200
    assert (await start(limited)) == (202, '"triggers";r=1;t=30')


async def test_it_has_no_limit_unless_told(sqlite_api: Api) -> None:
    await sqlite_api.make(name="often", schedule_type="manual", overlap="allow")
    for _ in range(20):
        answer = await sqlite_api.call("POST", "/api/v2/jobs/often/force-run")
        assert answer.status_code == 202
        assert "RateLimit" not in answer.headers


@pytest.mark.parametrize(
    ("path", "body", "counted"),
    [
        ("/api/v2/jobs/a/force-run", None, True),
        ("/api/v2/jobs/a b\n/retry", None, True),
        ("/api/v1/jobs/a/retry", None, True),
        ("/api/jobs/nightly/trigger", {}, True),
        ("/api/v2/triggers/webhook", {"path": "/x"}, True),
        ("/api/v2/triggers/webhook/a/b/c", None, True),
        ("/api/v2/triggers/webhooks", {"job_id": "a"}, False),
        ("/api/v2/triggers/test", {"path": "/x"}, False),
        ("/api/v2/jobs/bulk", {"action": "run"}, True),
        ("/api/v2/jobs/bulk", {"action": "run", "dry_run": True}, False),
        ("/api/v2/jobs/bulk", {"action": "pause"}, False),
        ("/api/v2/jobs/bulk", {"action": ["run"]}, False),
        ("/api/v2/jobs/bulk", ["run"], False),
        ("/api/admin/schedulers", {"action": "trigger", "schedulerId": "a"}, True),
        ("/api/admin/schedulers/", {"action": "TRIGGER"}, True),
        ("/api/admin/schedulers", {"action": "restart"}, False),
        ("/api/admin/schedulers", None, False),
        ("/api/v2/jobs", {"action": "run"}, False),
        ("/api/v2/jobs/a/pause", None, False),
    ],
)
def test_it_knows_what_starts_something(path: str, body: object, counted: bool) -> None:
    assert starts_something("POST", path, body) is counted
    assert not starts_something("GET", path, body)


async def test_it_forgets_who_has_not_called_for_longest(
    clock: StillClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rates, "_MOST_CALLERS", 2)

    async def nowhere(*_: object) -> None:
        pass

    door = Rates(nowhere, Rate(calls=1), clock)
    for address in ("a", "b", "a", "c", "b"):
        scope = {"type": "http", "method": "POST", "path": "/api/jobs/x/trigger", "client": (address, 1)}
        await door(scope, _nothing, _ignored)
    assert list(door._buckets) == ["c", "b"]


async def _nothing() -> dict[str, object]:
    return {"type": "http.disconnect"}


async def _ignored(_: object) -> None:
    pass
