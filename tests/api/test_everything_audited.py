"""Whatever can be changed over the API leaves an entry in the audit trail, with who did it."""

from __future__ import annotations

from typing import Any, Final

from noonday.api.app import create_app
from noonday.api.callers import api_routes, right_of
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.domain.access import Caller, Right, Role
from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.domain.outcome import Failed
from noonday.store import audit, breakers
from noonday.store.audit import AuditFilter
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, client_of
from tests.control.peers import an_instance, enter
from tests.factories import NOON

# The bodies of the routes that change something, in an order in which each of them can be called once.
# `{job}` is a job of version 1 made for this call alone; a word in front says what was done with it before.
CALLS: Final[list[tuple[str, str, Any]]] = [
    ("POST", "/api/v2/jobs", {"name": "a", "url": "https://a.test/", "cron_expression": "0 * * * *"}),
    ("PUT", "/api/v2/jobs/{job}", {"description": "new"}),
    ("PATCH", "/api/v2/jobs/{job}", {"description": "new"}),
    ("DELETE", "/api/v2/jobs/{job}", None),
    ("POST", "/api/v2/jobs/{job}/pause", None),
    ("POST", "/api/v2/jobs/{job}/skip-next", None),
    ("POST", "paused /api/v2/jobs/{job}/resume", None),
    ("POST", "disabled /api/v2/jobs/{job}/enable", None),
    ("POST", "/api/v2/jobs/{job}/disable", None),
    ("POST", "/api/v2/jobs/{job}/cancel", None),
    ("POST", "/api/v2/jobs/{job}/force-run", None),
    ("POST", "failed /api/v2/jobs/{job}/retry", None),
    ("POST", "changed /api/v2/jobs/{job}/revert", {"revision": 1}),
    ("POST", "forced /api/v2/executions/{execution}/cancel", None),
    ("POST", "/api/v2/jobs/bulk", {"action": "pause", "jobs": ["{job}"]}),
    ("POST", "/api/v2/triggers/webhooks", {"job_id": "{job}", "pattern": "/a/*"}),
    ("POST", "/api/v2/triggers/channels", {"job_id": "{job}", "channel": "a"}),
    ("DELETE", "triggered /api/v2/triggers/jobs/{job}", None),
    ("POST", "/api/v1/jobs", {"source_id": "a", "url": "https://a.test/", "schedule_time": "0 * * * *"}),
    ("PUT", "/api/v1/jobs/{job}", {"url": "https://b.test/"}),
    ("DELETE", "/api/v1/jobs/{job}", None),
    ("POST", "/api/v1/jobs/{job}/pause", None),
    ("POST", "paused /api/v1/jobs/{job}/resume", None),
    ("POST", "/api/v1/jobs/{job}/cancel", None),
    ("POST", "failed /api/v1/jobs/{job}/retry", None),
    (
        "POST",
        "/api/jobs/register",
        {"name": "b", "service": "email", "endpoint": "/run", "cronExpression": "0 * * * *"},
    ),
    (
        "POST",
        "/api/jobs/register/all",
        {"service": "sms", "jobs": [{"name": "c", "endpoint": "/run", "cronExpression": "0 * * * *"}]},
    ),
    ("DELETE", "/api/jobs/{job}", None),
    ("POST", "/api/jobs/{job}/trigger", None),
    ("POST", "disabled /api/jobs/{job}/enable", None),
    ("POST", "/api/jobs/{job}/disable", None),
    ("PUT", "/api/jobs/{job}/cron", {"cronExpression": "5 * * * *"}),
    ("POST", "/api/admin/schedulers", {"action": "pause", "schedulerId": "{job}"}),
    ("POST", "/api/v2/services", {"name": "email", "url": "https://email.test"}),
    ("PUT", "/api/v2/services/{service}", {"url": "https://mail.test"}),
    ("DELETE", "/api/v2/services/{service}", None),
    ("POST", "/api/v2/keys", {"name": "a", "role": "viewer"}),
    ("DELETE", "/api/v2/keys/{key}", None),
    ("POST", "/api/v2/breakers/{domain}/reset", None),
    ("POST", "/api/v2/scheduler/drain", None),
    ("POST", "/api/v2/scheduler/resume", None),
    ("POST", "/api/v2/scheduler/engine/move", {"to": 2, "all": True}),
    ("POST", "moved /api/v2/scheduler/engine/finish", None),
]
# Rebalancing goes through the verbs above and what there is to move is hard to make; previews change nothing.
ELSEWHERE: Final = {f"/api/v{n}/scheduler/rebalance{more}" for n in (1, 2) for more in ("", "/preview")}


async def test_every_route_that_changes_something_is_in_the_trail(
    sqlite_db: Database, clock: StillClock
) -> None:
    async def identify(_: object) -> Caller:
        return Caller(name="ada", role=Role.ADMIN)

    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    services = ApiServices(db=sqlite_db, clock=clock, status=lambda: status, identify=identify)
    await enter(sqlite_db, an_instance("one"))
    heard = {"b.test": Heard(failures=9, error="refused")}
    await sqlite_db.write(lambda conn: breakers.hear(conn, heard, BreakerPolicy(), NOON))
    async with client_of(services) as client:
        world = World(Api(client, sqlite_db, clock))
        for method, told, body in CALLS:
            before, _, path = told.rpartition(" ")
            await world.prepare(before)
            count = await world.entries()
            answer = await world.api.call(method, world.filled(path), world.filled(body))
            assert answer.status_code < 300, (told, answer.text)
            assert await world.entries() > count, told
            if path == "/api/v2/keys":
                world.names["{key}"] = answer.json()["id"]


def test_no_such_route_is_forgotten(sqlite_db: Database, clock: StillClock) -> None:
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    app = create_app(ApiServices(db=sqlite_db, clock=clock, status=lambda: status))
    changing = {
        (method, route.path)
        for route in api_routes(app.routes)
        for method in (route.methods or set()) - {"GET", "HEAD"}
        if right_of(route) - {None, Right.READ} and route.path not in ELSEWHERE
    }
    assert changing == {(method, told.rpartition(" ")[2]) for method, told, _ in CALLS}


class World:
    def __init__(self, api: Api) -> None:
        self.api = api
        self.names = {"{service}": "email", "{domain}": "b.test"}
        self._made = 0

    async def prepare(self, before: str) -> None:
        """A fresh job, with what was done to it before."""
        self._made += 1
        name = f"job-{self._made}"
        more = {"max_retries": 0, "scheduler_version": 1}
        if before == "triggered":
            more |= {"trigger_webhook": "/b/*"}  # type: ignore[dict-item]
        await self.api.make(name=name, **more)
        path = f"/api/v2/jobs/{name}"
        match before:
            case "paused":
                await self.api.call("POST", f"{path}/pause")
            case "disabled":
                await self.api.call("POST", f"{path}/disable")
            case "moved":
                await self.api.call("POST", "/api/v2/scheduler/engine/move", {"to": 2, "all": True})
            case "changed":
                await self.api.call("PUT", path, {"description": "old"})
            case "forced" | "failed":
                started = (await self.api.call("POST", f"{path}/force-run")).json()
                self.names["{execution}"] = started["execution_id"]
                if before == "failed":
                    for run in await self.api.claim():
                        await self.api.end(run, Failed(error="no"))
        self.names["{job}"] = name

    def filled(self, told: Any) -> Any:
        if isinstance(told, str):
            for mark, name in self.names.items():
                told = told.replace(mark, name)
            return told
        if isinstance(told, dict):
            return {key: self.filled(value) for key, value in told.items()}
        return [self.filled(item) for item in told] if isinstance(told, list) else told

    async def entries(self) -> int:
        wanted = AuditFilter(actor="ada")
        return (await self.api.db.read(lambda conn: audit.find(conn, wanted))).total
