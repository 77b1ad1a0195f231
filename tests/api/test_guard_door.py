"""The door: foreign names, foreign pages, too much to carry, and every refusal in the same words."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from noonday.api.door.guard import MAX_BODY, Access
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.store.database import Database
from tests.api.caller import Api, client_of

BODY = {"url": "https://example.com", "schedule_type": "manual"}


@pytest.mark.parametrize(
    ("access", "host", "known"),
    [
        (Access(), "localhost:8060", True),
        (Access(), "LOCALHOST", True),
        (Access(), "app.localhost:8060", True),
        (Access(), "127.0.0.1:8060", True),
        (Access(), "127.8.9.1", True),
        (Access(), "[::1]:8060", True),
        (Access(), "evil.example", False),
        (Access(), "localhost.evil.example", False),
        (Access(), "127.0.0.1.evil.example", False),
        (Access(), "10.0.0.5:8060", False),
        (Access(), "", False),
        (Access(), "[::1].evil", False),
        (Access(allowed_hosts=("noonday",)), "noonday:8060", True),
        (Access(allowed_hosts=("*.corp.example",)), "jobs.corp.example", True),
        (Access(allowed_hosts=("*.corp.example",)), "corp.example.evil", False),
        (Access(allowed_hosts=("*",)), "anything", True),
        (Access(host="10.0.0.5"), "10.0.0.5:8060", True),
        (Access(host="10.0.0.5"), "10.0.0.6:8060", False),
        (Access(host="0.0.0.0"), "10.0.0.5:8060", True),
        (Access(host="0.0.0.0"), "evil.example", False),
        (Access(host="::"), "[fd00::1]:8060", True),
    ],
    ids=str,
)
def test_it_knows_its_own_names(access: Access, host: str, known: bool) -> None:
    assert access.knows(host) is known


async def test_it_does_not_answer_under_a_foreign_name(sqlite_api: Api) -> None:
    for path in ("/api/v2/jobs", "/openapi.json", "/nowhere"):
        answer = await sqlite_api.call("GET", path, headers={"Host": "evil.example"})
        assert answer.status_code == 421
        assert "ALLOWED_HOSTS" in answer.json()["error"]
    for path in ("/health/live", "/health/ready"):
        assert (await sqlite_api.call("GET", path, headers={"Host": "10.1.2.3"})).status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 201),
        ({"Origin": "http://localhost:8060"}, 201),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 201),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
    ],
    ids=str,
)
async def test_it_lets_no_foreign_page_change_anything(
    sqlite_api: Api, headers: dict[str, str], status: int
) -> None:
    answer = await sqlite_api.call("POST", "/api/v2/jobs", BODY, headers=headers)
    assert answer.status_code == status, answer.text
    assert (await sqlite_api.get("/api/v2/jobs", headers=headers))["total"] == (status == 201)


@pytest.mark.parametrize(
    ("media", "status"),
    [
        ("application/json", 201),
        ("application/json; charset=utf-8", 201),
        ("application/merge-patch+json", 201),
        ("application/x-www-form-urlencoded", 201),  # what curl -d says
        ("text/plain", 201),
        ("multipart/form-data; boundary=x", 415),
        ("application/xml", 415),
    ],
)
async def test_it_takes_json_however_it_is_called(sqlite_api: Api, media: str, status: int) -> None:
    content = b'\xef\xbb\xbf{"url": "https://example.com", "schedule_type": "manual"}'
    answer = await sqlite_api.client.post("/api/v2/jobs", content=content, headers={"Content-Type": media})
    assert answer.status_code == status, answer.text


async def _drops(size: int) -> AsyncIterator[bytes]:
    for _ in range(size // 65_536):
        yield b" " * 65_536


async def test_it_stops_reading_a_body_that_never_ends(sqlite_api: Api) -> None:
    announced = await sqlite_api.client.post("/api/v2/jobs", content=b" " * (MAX_BODY + 1))
    dripping = await sqlite_api.client.post("/api/v2/jobs", content=_drops(4 * MAX_BODY))
    for answer in (announced, dripping):
        assert answer.status_code == 413
        assert answer.headers["Content-Type"] == "application/problem+json"
    whole = await sqlite_api.client.post("/api/v2/jobs", content=b" " * MAX_BODY)
    assert whole.status_code == 400


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nowhere", 404),
        ("PATCH", "/api/v2/jobs", 405),
        ("GET", "/swagger", 404),
        ("GET", "/redoc", 404),
    ],
)
async def test_it_says_no_in_one_form(sqlite_api: Api, method: str, path: str, status: int) -> None:
    answer = await sqlite_api.call(method, path)
    problem = answer.json()
    assert (answer.status_code, problem["status"]) == (status, status)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert problem["error"] == problem["detail"]
    assert problem["type"].startswith("urn:noonday:problem:")


async def test_it_sends_headers_that_keep_browsers_honest(sqlite_api: Api) -> None:
    for path in ("/api/v2/jobs", "/nowhere"):
        headers = (await sqlite_api.call("GET", path)).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Cache-Control"] == "no-store"


async def test_it_hides_a_defect_and_goes_on(services: ApiServices) -> None:
    def broken() -> LocalStatus:
        raise RuntimeError("s3cr3t detail")

    async with client_of(replace(services, status=broken), forgiving=True) as client:
        answer = await client.get("/api/v2/scheduler/health")
        assert (answer.status_code, "s3cr3t" in answer.text) == (500, False)
        assert (await client.get("/health/live")).status_code == 200


async def test_it_says_503_when_the_database_is_gone(services: ApiServices) -> None:
    gone = Database("postgresql://nobody@127.0.0.1:1/none")
    try:
        async with client_of(replace(services, db=gone)) as client:
            answer = await client.get("/api/v2/jobs")
            ready = await client.get("/health/ready")
            live = await client.get("/health/live")
            health = await client.get("/api/v2/scheduler/health")
    finally:
        await gone.close()
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "5"
    assert (ready.status_code, ready.json()["status"]) == (503, "unhealthy")
    assert live.status_code == 200
    assert (health.status_code, health.json()["status"]) == (503, "unhealthy")
