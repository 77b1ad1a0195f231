"""No place that takes a URL takes one that leads where nobody may call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from httpx2 import ASGITransport, AsyncClient

from noonday.api.app import create_app
from noonday.store.database import Database
from noonday.targets import NetworkPolicy
from tests.api.caller import Api, StillClock
from tests.hostile.conftest import services_of
from tests.targets.url_corpus import INSIDE, MALFORMED, METADATA

OPEN = NetworkPolicy()
STRICT = NetworkPolicy(mode="strict", allow=("allowed.example",))
GOOD = "https://allowed.example/"


class Place(NamedTuple):
    """`field` is the one that the refusal names."""

    method: str
    path: str
    field: str
    body: Callable[[str], Mapping[str, Any]]


def _http(url: str) -> Mapping[str, Any]:
    return {"target": {"type": "http", "url": url}}


def _fetch(url: str) -> Mapping[str, Any]:
    return {"target": {"type": "fetch", "url": url}}


def _plain(url: str) -> Mapping[str, Any]:
    return {"url": url}


PLACES = [
    Place("POST", "/api/v2/jobs", "url", _plain),
    Place("POST", "/api/v2/jobs", "target.url", _http),
    Place("POST", "/api/v2/jobs?dry_run=true", "target.url", _fetch),
    Place("POST", "/api/v1/jobs", "url", _plain),
    Place("PUT", "/api/v2/jobs/there", "url", _plain),
    Place("PUT", "/api/v1/jobs/there", "target.url", _http),
    Place("PATCH", "/api/v2/jobs/there", "target.url", lambda url: {"target": {"url": url}}),
    Place("POST", "/api/v2/services", "url", lambda url: {"name": "mail", "url": url}),
    Place("PUT", "/api/v2/services/known", "url", _plain),
]
# What would leave the service by the path that a job adds to its base URL.
ENDPOINTS = [
    "//evil.example/x",
    "@evil.example",
    "http://evil.example/",
    ":80@evil.example/",
    "\\\\evil.example",
    "/\\evil.example",
    ".evil.example/",
    "",
    "x",
    " /x",
    "/x y",
    "/x\r\nHost: evil.example",
    "/x\x00",
    "/\u2025/",
    "/x#@evil.example",
    "/\tx",
    "?x=//evil.example",
    "#",
]


async def _client(db: Database, policy: NetworkPolicy) -> Api:
    app = create_app(services_of(db, StillClock(), policy))
    client = AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost:8060")
    api = Api(client, db, StillClock())
    await api.make(name="there", url=GOOD)
    await api.call("PUT", "/api/v2/services/known", {"url": GOOD})
    return api


@pytest.mark.parametrize("policy", [OPEN, STRICT], ids=lambda policy: policy.mode)
async def test_a_forbidden_url_is_refused_by_its_field(sqlite_db: Database, policy: NetworkPolicy) -> None:
    api = await _client(sqlite_db, policy)
    before = await _everything(api)
    wrong = []
    for place in PLACES:
        for url in (INSIDE + METADATA[::4]) if policy is STRICT else (METADATA + MALFORMED):
            answer = await api.call(place.method, place.path, place.body(url))
            named = [error["field"] for error in answer.json().get("errors", ())]
            if answer.status_code != 422 or place.field not in named:
                wrong.append((place.path, url[:80], answer.status_code, answer.text[:200]))
    assert not wrong
    assert await _everything(api) == before
    for place in PLACES:
        fine = await api.call(place.method, place.path, place.body(GOOD + "other"))
        assert fine.status_code in (200, 201), fine.text
    await api.client.aclose()


async def _everything(api: Api) -> Any:
    return await api.get("/api/v2/jobs"), await api.get("/api/v2/services")


async def test_no_endpoint_leads_away_from_its_service(sqlite_db: Database) -> None:
    api = await _client(sqlite_db, OPEN)
    for endpoint in ENDPOINTS:
        declared = {"name": "x", "service": "known", "cronExpression": "@daily", "endpoint": endpoint}
        target = {"type": "service", "service": "known", "endpoint": endpoint}
        several = {"service": "known", "jobs": [declared]}
        for path, body, field in (
            ("/api/v2/jobs", {"target": target}, "target.endpoint"),
            ("/api/jobs/register", declared, "endpoint"),
            ("/api/jobs/register/all", several, "jobs[0].endpoint"),
        ):
            answer = await api.call("POST", path, body)
            assert answer.status_code == 422, (endpoint, answer.text)
            assert [error["field"] for error in answer.json()["errors"]] == [field], (endpoint, answer.text)
    assert (await api.get("/api/v2/jobs"))["total"] == 1
    await api.client.aclose()
