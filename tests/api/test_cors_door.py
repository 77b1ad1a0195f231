"""Web pages of other origins: those that are named may call, all others are told nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from httpx2 import AsyncClient

from noonday.api.door.guard import Access
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.store.database import Database
from tests.api.caller import StillClock, client_of
from tests.factories import NOON

PAGE = "https://ui.example"
BODY = {"url": "https://example.com", "schedule_type": "manual"}
FOREIGN = [
    "https://evil.example",
    "http://ui.example",
    "https://ui.example.evil",
    "https://ui.example:444",
    "null",
]


@pytest.fixture
def named(sqlite_db: Database, clock: StillClock) -> ApiServices:
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    access = Access(origins=(PAGE, "http://localhost:3000"))
    return ApiServices(db=sqlite_db, clock=clock, status=lambda: status, access=access)


@pytest.fixture
async def client(named: ApiServices) -> AsyncIterator[AsyncClient]:
    async with client_of(named) as made:
        yield made


async def test_it_answers_a_browser_that_asks_first(client: AsyncClient) -> None:
    asked = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "PUT",
        "Access-Control-Request-Headers": "authorization, if-match, content-type, idempotency-key",
        "Sec-Fetch-Site": "cross-site",
    }
    answer = await client.options("/api/v2/jobs/any", headers=asked)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["Access-Control-Allow-Origin"] == PAGE
    allowed = answer.headers["Access-Control-Allow-Headers"].lower().split(", ")
    assert set(asked["Access-Control-Request-Headers"].split(", ")) <= set(allowed)
    assert "PUT" in answer.headers["Access-Control-Allow-Methods"].split(", ")
    assert "Access-Control-Allow-Credentials" not in answer.headers
    assert answer.headers["Vary"] == "Origin"


@pytest.mark.parametrize("origin", [PAGE, "http://localhost:3000"])
async def test_it_lets_a_named_page_read_and_change(client: AsyncClient, origin: str) -> None:
    headers = {"Origin": origin, "Sec-Fetch-Site": "cross-site"}
    made = await client.post("/api/v2/jobs", json=BODY, headers=headers)
    assert made.status_code == 201
    assert made.headers["Access-Control-Allow-Origin"] == origin
    exposed = made.headers["Access-Control-Expose-Headers"].split(", ")
    assert {"ETag", "Location", "X-Request-ID", "Retry-After"} <= set(exposed)
    found = await client.get("/api/v2/jobs", headers=headers)
    assert (found.json()["total"], found.headers["Access-Control-Allow-Origin"]) == (1, origin)


@pytest.mark.parametrize("origin", FOREIGN)
async def test_it_allows_nothing_to_other_pages(client: AsyncClient, origin: str) -> None:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    for answer in (
        await client.options("/api/v2/jobs", headers=asked),
        await client.post("/api/v2/jobs", json=BODY, headers={"Origin": origin}),
        await client.get("/api/v2/jobs", headers={"Origin": origin}),
    ):
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
        assert answer.headers["Vary"] == "Origin"
    assert (await client.get("/api/v2/jobs")).json()["total"] == 0


async def test_it_lets_a_named_page_read_why_it_was_refused(named: ApiServices) -> None:
    def broken() -> LocalStatus:
        raise RuntimeError("defect")

    async with client_of(replace(named, status=broken), forgiving=True) as client:
        for path, status in (("/nowhere", 404), ("/api/v2/scheduler/health", 500)):
            answer = await client.get(path, headers={"Origin": PAGE})
            assert answer.status_code == status
            assert answer.headers["Access-Control-Allow-Origin"] == PAGE


async def test_it_knows_no_page_unless_told(named: ApiServices) -> None:
    async with client_of(replace(named, access=Access())) as client:
        asked = {"Origin": PAGE, "Access-Control-Request-Method": "POST"}
        answer = await client.options("/api/v2/jobs", headers=asked)
        assert answer.status_code == 405
        assert not [name for name in answer.headers if name.lower().startswith("access-control-")]
        assert (await client.post("/api/v2/jobs", json=BODY, headers={"Origin": PAGE})).status_code == 403
