"""A service reads, runs and registers its own jobs; those of others do not exist for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import insert

from noonday.api.app import create_app
from noonday.api.callers import api_routes, right_of
from noonday.api.services import ApiServices
from noonday.control.owners import Owners
from noonday.control.system import LocalStatus
from noonday.domain.access import RIGHTS, Caller, Right, Role
from noonday.domain.errors import NotFound
from noonday.store.database import Database
from noonday.store.front_tables import declarations
from tests.api.caller import Api, StillClock, client_of
from tests.api.people import bearer, claims, guarded, token
from tests.factories import NOON

OPERATOR = bearer(token())
MAIL = bearer(token(claims(role="service", sub="mailer", service="email-service")))
NOBODY = bearer(token(claims(role="service", service="no-service")))


@pytest.fixture
async def shop(services: ApiServices, clock: StillClock) -> AsyncIterator[Api]:
    """Three jobs: of the e-mail service, of another one, and of nobody in particular."""
    made, _ = guarded(services)
    async with client_of(made) as client:
        client.headers.update(OPERATOR)
        api = Api(client, services.db, clock)
        for name in ("email-service", "billing-service"):
            target = {"type": "service", "service": name, "endpoint": "/run"}
            await api.make(name=f"of {name}", target=target, schedule_type="manual")
        await api.make(name="of nobody", schedule_type="manual")
        yield api


async def started(shop: Api, job: str) -> str:
    answer = await shop.call("POST", f"/api/v2/jobs/{job}/force-run")
    assert answer.status_code == 202, answer.text
    return str(answer.json()["execution_id"])


async def declare(shop: Api, job: str, service: str) -> None:
    row = {
        "job_id": (await shop.stored(job)).id,
        "service": service,
        "body": {},
        "declared_at": shop.clock.now(),
    }
    await shop.db.write(lambda conn: conn.execute(insert(declarations).values(row)))


async def test_a_service_sees_its_own_jobs_and_runs(shop: Api) -> None:
    own = (await shop.stored("of email-service")).id
    for ref in (own, "of email-service"):
        assert (await shop.get(f"/api/v2/jobs/{ref}", headers=MAIL))["name"] == "of email-service"
    run = await shop.call("POST", f"/api/v2/jobs/{own}/force-run", headers=MAIL)
    assert run.status_code == 202
    found = await shop.get(f"/api/v2/executions/{run.json()['execution_id']}", headers=MAIL)
    assert (found["job_id"], found["triggered_by_user"]) == (own, "mailer")


async def test_what_belongs_to_others_does_not_exist_for_it(shop: Api) -> None:
    for job in ("of billing-service", "of nobody"):
        execution = await started(shop, job)
        for caller in (MAIL, NOBODY):
            for ref in (job, (await shop.stored(job)).id):
                answer = await shop.call("GET", f"/api/v2/jobs/{ref}", headers=caller)
                assert (answer.status_code, answer.json()["detail"]) == (404, f"there is no job {ref!r}")
            answer = await shop.call("GET", f"/api/v2/executions/{execution}", headers=caller)
            words = f"there is no execution {execution!r}"
            assert (answer.status_code, answer.json()["detail"]) == (404, words)
    unknown = await shop.call("GET", "/api/v2/jobs/unknown", headers=MAIL)
    assert (unknown.status_code, unknown.json()["detail"]) == (404, "there is no job 'unknown'")


async def test_it_lists_its_own_jobs_alone(shop: Api) -> None:
    listed = await shop.get("/api/v2/jobs", headers=MAIL)
    assert [job["name"] for job in listed["jobs"]] == ["of email-service"]
    assert listed["total"] == 1
    assert (await shop.get("/api/v2/jobs", headers=NOBODY))["total"] == 0
    assert (await shop.get("/api/v2/jobs"))["total"] == 3


async def test_a_declared_job_belongs_to_whoever_declared_it(shop: Api) -> None:
    await declare(shop, "of nobody", "email-service")
    await declare(shop, "of email-service", "billing-service")
    assert (await shop.get("/api/v2/jobs/of nobody", headers=MAIL))["name"] == "of nobody"
    assert (await shop.call("GET", "/api/v2/jobs/of email-service", headers=MAIL)).status_code == 404


async def test_a_service_without_a_name_owns_nothing(services: ApiServices, shop: Api) -> None:
    owners = Owners(services.db)
    nameless = Caller(name="nobody", role=Role.SERVICE)
    for job in ("of email-service", "of nobody"):
        with pytest.raises(NotFound):
            await owners.confine(nameless, job=job)
    with pytest.raises(NotFound):
        await owners.confine(nameless, execution=await started(shop, "of nobody"))
    for odd in ("no id", "'; --", "00000000-0000-7000-8000-000000000000"):
        with pytest.raises(NotFound):
            await owners.confine(nameless, execution=odd)


class TestOnOneDatabase:
    """Where the database makes no difference."""

    @pytest.fixture
    def services(self, sqlite_db: Database, clock: StillClock) -> ApiServices:
        status = LocalStatus(instance_id="instance-1", started_at=NOON)
        return ApiServices(db=sqlite_db, clock=clock, status=lambda: status)

    async def test_no_route_that_names_a_job_lets_it_near_another(
        self, services: ApiServices, shop: Api
    ) -> None:
        job = (await shop.stored("of billing-service")).id
        execution = await started(shop, job)
        wrong: list[str] = []
        tried = 0
        for route in api_routes(create_app(services).routes):
            names = set(route.param_convertors) & {"job", "execution"}
            if not names or not right_of(route) <= RIGHTS[Role.SERVICE]:
                continue
            values = dict.fromkeys(route.param_convertors, "1") | {"job": job, "execution": execution}
            path = route.path_format.format(**values)
            for method in route.methods or ():
                body: Any = None if method in ("GET", "DELETE") else {}
                answer = await shop.call(method, path, body, headers=MAIL)
                tried += 1
                if answer.status_code != 404:
                    wrong.append(f"{method} {path}: {answer.status_code}")
        assert wrong == []
        assert tried >= 5

    async def test_no_list_shows_it_what_belongs_to_others(self, services: ApiServices, shop: Api) -> None:
        """Every address without a job in it, after others' jobs of each kind were made and one has run."""
        target = {"type": "service", "service": "billing-service", "endpoint": "/run"}
        by_event = {"target": target, "schedule_type": "event"}
        hidden = [
            await shop.make(name="ledger by cron", target=target, cron_expression="*/5 * * * *"),
            await shop.make(name="ledger by event", trigger_webhook="/ledger/*", **by_event),
            await shop.make(name="ledger by channel", trigger_channel="ledger:*", **by_event),
        ]
        words = {
            "ledger",
            "of nobody",
            await started(shop, "ledger by cron"),
            *(job["id"] for job in hidden),
        }

        plain = [
            route.path
            for route in api_routes(create_app(services).routes)
            if right_of(route) == {Right.READ} and not route.param_convertors and route.methods == {"GET"}
        ]

        async def seen(caller: dict[str, str]) -> set[str]:
            shown = set()
            for path in plain:
                if path != "/api/events":  # which never ends
                    answer = await shop.call("GET", path, headers=caller)
                    shown |= {path for word in words if word in answer.text}
            return shown

        assert await seen(MAIL) == set()
        assert {"/api/v2/jobs", "/api/v2/executions"} <= await seen(OPERATOR)

    async def test_it_may_not_change_even_its_own(self, shop: Api) -> None:
        for method, path in (("PUT", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/cancel")):
            body: Any = None if method == "DELETE" else {}
            answer = await shop.call(method, f"/api/v2/jobs/of email-service{path}", body, headers=MAIL)
            assert answer.status_code == 403
            assert "the role service of mailer has not" in answer.json()["detail"]
