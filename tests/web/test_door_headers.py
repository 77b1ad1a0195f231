"""What browsers are told with every answer: no caches, no frames, no guessing, nothing from elsewhere."""

from __future__ import annotations

import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient, Response

from noonday.api.app import create_app
from noonday.api.callers import open_to_all
from noonday.store.database import Database
from noonday.web import routes
from noonday.web.assets import address_of
from noonday.web.pages import POLICY
from tests.api.caller import StillClock
from tests.web.signing_in import HTML, closed_site
from tests.web.site import HOME, Site, services_of

ALWAYS = {
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


def told(answer: Response) -> None:
    assert {name: answer.headers.get(name) for name in ALWAYS} == ALWAYS
    policy = answer.headers["content-security-policy"]
    assert {"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy.split("; "))
    assert "unsafe" not in policy
    assert "*" not in policy


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 200),
        ("/ui/jobs", 200),
        ("/ui/nowhere", 404),
        ("/ui/jobs?offset=-1", 422),
        ("/ui", 308),
        ("/admin/scheduler", 307),
        ("/api/v2/jobs", 200),
        ("/health/live", 200),
    ],
)
async def test_what_holds_data_is_kept_nowhere(site: Site, path: str, status: int) -> None:
    answer = await site.client.get(path, headers=HTML)
    assert answer.status_code == status
    told(answer)
    assert answer.headers["cache-control"] == "no-store"
    if answer.headers.get("content-type", "").startswith("text/html"):
        assert answer.headers["content-security-policy"] == POLICY


async def test_a_file_is_kept_for_good_and_is_no_page(site: Site) -> None:
    for name in ("kit.js", "kit.css", "icon.svg"):
        answer = await site.client.get(address_of(name))
        assert answer.status_code == 200
        told(answer)
        assert "immutable" in answer.headers["cache-control"]
        assert "script-src" not in answer.headers["content-security-policy"]
    told(await site.client.get("/docs"))


async def test_the_door_and_the_way_to_it_are_kept_nowhere(sqlite_db: Database, clock: StillClock) -> None:
    async with closed_site(sqlite_db, clock) as site:
        for answer in (
            await site.client.get("/ui/jobs", headers=HTML),
            await site.client.get("/ui/login", headers=HTML),
            await site.sign_in("nonsense"),
            await site.sign_in(await site.key()),
            await site.send("/ui/logout"),
        ):
            told(answer)
            assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize("accept", ["text/html", "application/json"])
async def test_so_is_a_defect(sqlite_db: Database, clock: StillClock, accept: str) -> None:
    app: FastAPI = create_app(services_of(sqlite_db, clock))
    routes.install(app)

    async def fail() -> None:
        raise RuntimeError

    app.add_api_route("/ui/trouble", fail, dependencies=[open_to_all])
    transport = ASGITransport(app=app, raise_app_exceptions=False)
    async with AsyncClient(transport=transport, base_url=HOME) as client:
        answer = await client.get("/ui/trouble", headers={"Accept": accept})
    assert answer.status_code == 500
    told(answer)
    assert answer.headers["cache-control"] == "no-store"
