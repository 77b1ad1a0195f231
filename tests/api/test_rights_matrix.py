"""Every route and every role: nobody gets in unknown, no role does more than its rights."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from fastapi import APIRouter, Depends, FastAPI, WebSocket
from fastapi.routing import APIRoute

from noonday.api.app import create_app
from noonday.api.callers import api_routes, checked, needs, open_to_all, right_of
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.domain.access import RIGHTS, Right, Role
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.api.knocking import knock
from tests.api.people import bearer, guarded, key_for
from tests.factories import NOON

NOWHERE = "00000000-0000-7000-8000-000000000000"
OPEN = re.compile(  # and what each of them shows instead of a key
    r"/health(/live|/ready)?|/api/jobs/health"  # nothing: they tell nothing
    r"|/openapi\.json|/docs(/.*)?"  # nothing: they are no secret
    r"|/api/v2/executions/\{execution\}/(callback|heartbeat|progress|result)(/\w+)?"  # the token of the run
    r"|/api/v2/triggers/webhook(/\{path:path\})?"  # a signature
)
# What changes nothing although it is no GET: it answers a question that is too long for an address.
QUESTIONS = re.compile(r".*/(preview|explain|test|validate)|/api/v2/schedules/.*")
STRONGER = {  # beyond the rule that reading needs READ and changing needs more
    r"/api/v2/keys.*": Right.ACCESS,
    r"/api/v2/scheduler/(drain|resume)": Right.MANAGE,
    r"/api/v2/scheduler/engine/(move|finish)": Right.MANAGE,
    r"/api/v[12]/scheduler/rebalance": Right.MANAGE,
    r".*/jobs/\{job\}/(force-run|retry)": Right.RUN,
    r"/api/v2/audit.*": Right.ACCESS,
}


@dataclass(frozen=True, slots=True)
class Way:
    method: str
    path: str
    right: Right | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def filled(self) -> str:
        ids = {"job": NOWHERE, "execution": NOWHERE, "n": "1", "revision": "1"}
        return re.sub(r"\{(\w+)(?::\w+)?\}", lambda match: ids.get(match[1], "nothing"), self.path)


class Door:
    """The closed API, and a proof for each role."""

    def __init__(self, app: FastAPI, proofs: dict[Role | None, dict[str, str]]) -> None:
        self.app, self.proofs = app, proofs

    @property
    def ways(self) -> list[Way]:
        return [
            Way(method, route.path, min(right_of(route), key=str))
            for route in api_routes(self.app.routes)
            for method in sorted(route.methods or ())
        ]

    async def status(self, way: Way, role: Role | None) -> int:
        body: Any = None if way.method in ("GET", "DELETE") else {}
        return await knock(self.app, way.method, way.filled, self.proofs[role], body)


@pytest.fixture
async def door(sqlite_db: Database, clock: StillClock) -> AsyncIterator[Door]:
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    services, keys = guarded(ApiServices(db=sqlite_db, clock=clock, status=lambda: status))
    proofs: dict[Role | None, dict[str, str]] = {None: {}}
    for role in Role:
        proofs[role] = bearer(await key_for(keys, role, "email-service" if role is Role.SERVICE else None))
    app = create_app(services)
    yield Door(app, proofs)
    app.state.services.close()


async def test_every_route_lets_in_those_who_may_and_nobody_else(door: Door) -> None:
    wrong: list[str] = []
    for way in door.ways:
        for role in (None, *Role):
            status = await door.status(way, role)
            if status >= 500 and not (status == 503 and way.right is None):
                wrong.append(f"{way} as {role}: {status}")
            if way.right is None:
                continue
            may = role is not None and way.right in RIGHTS[role]
            expected = 0 if may else 401 if role is None else 403
            stricter = role is Role.SERVICE and status == 403  # where what is shown belongs to no service
            if expected != (status if status in (401, 403) else 0) and not stricter:
                wrong.append(f"{way} as {role}: {status} instead of {expected or 'another'}")
    assert wrong == []
    assert len(door.ways) > 40


async def test_only_these_routes_are_open(door: Door) -> None:
    assert [str(way) for way in door.ways if way.right is None and not OPEN.fullmatch(way.path)] == []


async def test_a_route_has_one_right_and_the_router_does_not_weaken_it(door: Door) -> None:
    several = [route.path for route in api_routes(door.app.routes) if len(right_of(route)) != 1]
    assert several == []


async def test_whoever_may_only_read_changes_nothing(door: Door) -> None:
    weak = [way for way in door.ways if way.method != "GET" and way.right is Right.READ]
    assert [str(way) for way in weak if not QUESTIONS.fullmatch(way.path)] == []


async def test_what_is_worth_more_needs_its_own_right(door: Door) -> None:
    for pattern, right in STRONGER.items():
        found = [way for way in door.ways if re.fullmatch(pattern, way.path)]
        assert [str(way) for way in found if way.right is not right] == []
    assert [
        str(way) for way in door.ways if way.method in ("PUT", "DELETE", "PATCH") and way.right is Right.RUN
    ] == []


async def test_a_path_names_jobs_in_the_words_that_confine_a_service(door: Door) -> None:
    """A `{name}` of a job would not be looked at."""
    jobs = re.compile(r"/jobs/\{(?!job\})|/executions/\{(?!execution\})|/schedulers/\{(?!job\})")
    assert [way.path for way in door.ways if jobs.search(way.path)] == []


async def test_an_unknown_address_tells_nobody_anything(door: Door) -> None:
    for path in (
        "/api/v2/nowhere",
        "/api",
        "/health/other",
        "/api/v2/jobs/",
        "//api/v2/jobs",
        "/api/v2/%6aobs",
    ):
        assert await knock(door.app, "GET", path, {}) in (401, 404)
    assert await knock(door.app, "GET", "/api/v2/nowhere", door.proofs[Role.VIEWER]) == 404
    assert await knock(door.app, "GET", "/api/v2/jobs", {}) == 401
    assert await knock(door.app, "TRACE", "/api/v2/jobs", {}) == 401
    assert await knock(door.app, "HEAD", "/api/v2/jobs", {}) == 401


def test_a_route_that_names_no_right_does_not_start() -> None:
    async def forgotten() -> None:
        raise AssertionError("nobody gets here")

    router, app = APIRouter(prefix="/api"), FastAPI(openapi_url=None)
    router.add_api_route("/fine", forgotten, dependencies=[needs(Right.READ)])
    router.add_api_route("/open", forgotten, dependencies=[open_to_all])
    app.include_router(router)
    checked(app.routes)
    router.add_api_route("/forgotten", forgotten)
    with pytest.raises(AssertionError, match="/api/forgotten names no right"):
        checked(app.routes)
    assert [type(route) for route in api_routes(app.routes)] == [APIRoute] * 3


def test_a_route_that_would_wait_for_a_thread_does_not_start() -> None:
    """FastAPI calls plain functions in one: two changes of hands for what takes a microsecond."""

    async def fine() -> None:
        raise AssertionError("nobody gets here")

    def plain() -> None:
        raise AssertionError("nobody gets here")

    app = FastAPI(openapi_url=None)
    app.add_api_route("/fine", fine, dependencies=[open_to_all])
    checked(app.routes)
    app.add_api_route("/slow", fine, dependencies=[open_to_all, Depends(plain)])
    with pytest.raises(AssertionError, match="/slow waits for a thread to call"):
        checked(app.routes)


def test_a_route_that_cannot_name_a_right_does_not_start() -> None:
    async def hall(socket: WebSocket) -> None:
        raise AssertionError("nobody gets here")

    app = FastAPI(openapi_url=None)
    checked(app.routes)
    app.add_api_websocket_route("/hall", hall)
    with pytest.raises(AssertionError, match="/hall names no right"):
        checked(app.routes)
