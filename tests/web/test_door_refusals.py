"""Refusals: a page with words and a way on for people, problem+json for programs."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient, Response

from noonday.api.app import create_app
from noonday.api.callers import open_to_all
from noonday.control.errors import Outdated
from noonday.domain.errors import Conflict, Invalid, MoveRefused, NotAllowed, NotFound, Problem, Unavailable
from noonday.store.database import Database
from noonday.web import routes
from tests.api.caller import StillClock
from tests.web.site import HOME, Site, services_of

HTML = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}


@pytest.fixture
def app(sqlite_db: Database, clock: StillClock) -> FastAPI:
    made = create_app(services_of(sqlite_db, clock))
    routes.install(made)
    return made


async def refused(app: FastAPI, error: Exception, method: str = "GET", **headers: str) -> Response:
    """The answer to this error, raised behind an address of the pages."""

    async def fail() -> None:
        raise error

    app.add_api_route("/ui/trouble", fail, methods=[method], dependencies=[open_to_all])
    transport = ASGITransport(app=app, raise_app_exceptions=False)
    async with AsyncClient(transport=transport, base_url=HOME) as client:
        return await client.request(method, "/ui/trouble", headers={**HTML, **headers})


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (NotAllowed("this needs the right manage"), 403, "This needs the right manage."),
        (NotFound("there is no job 'a<b'"), 404, "There is no job &#39;a&lt;b&#39;."),
        (MoveRefused("running", "paused"), 409, "A job that is running cannot become paused."),
        (Conflict("the name is taken"), 409, "The name is taken."),
        (Outdated("somebody was faster"), 412, "Somebody was faster."),
        (Invalid(Problem("cron", "is no cron text"), Problem("name", "is taken")), 422, "<code>cron</code>"),
        (Unavailable("the database does not answer"), 503, "The database does not answer."),
        (RuntimeError("a secret of ours"), 500, "Something went wrong inside"),
    ],
)
async def test_each_kind_is_a_page_in_words(app: FastAPI, error: Exception, status: int, words: str) -> None:
    answer = await refused(app, error)
    assert answer.status_code == status
    assert answer.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"
    assert words in answer.text
    assert answer.text.count("<h1>") == 1
    assert answer.headers["x-request-id"] in answer.text
    assert "a secret of ours" not in answer.text


async def test_it_says_when_to_come_back(app: FastAPI) -> None:
    answer = await refused(app, Unavailable())
    assert answer.headers["retry-after"] == "5"
    assert 'href="/ui/trouble">Try again' in answer.text


async def test_it_leads_back_to_the_page_with_the_form_but_to_no_other_site(app: FastAPI) -> None:
    mine = {"Referer": f"{HOME}/ui/jobs?q=a", "Origin": HOME}
    assert 'href="/ui/jobs?q=a">Back' in (await refused(app, Conflict(), "POST", **mine)).text
    strange = {"Referer": "https://x.example/ui/jobs"}
    assert "Back</a>" not in (await refused(app, Conflict(), **strange)).text


async def test_a_program_gets_what_programs_get(app: FastAPI) -> None:
    answer = await refused(app, Conflict("no"), Accept="*/*")
    assert answer.status_code == 409
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_program_gets_a_defect_as_programs_do(app: FastAPI) -> None:
    answer = await refused(app, RuntimeError(), Accept="application/json")
    assert answer.json()["status"] == 500


async def test_the_api_answers_browsers_in_json_too(site: Site) -> None:
    answer = await site.client.get("/api/v2/jobs/none", headers=HTML)
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("path", ["/nowhere", "/ui/nowhere"])
async def test_an_unknown_address_is_a_page(site: Site, path: str) -> None:
    assert "Nothing found" in await site.page(path, 404)


async def test_what_the_guard_refuses_is_a_page_as_well(site: Site) -> None:
    headers = {**HTML, "Origin": "https://x.example"}
    answer = await site.client.post("/ui/settings/reader", data={"theme": "dark"}, headers=headers)
    assert answer.status_code == 403
    assert "You may not do this" in answer.text


async def test_a_long_refusal_is_packed_only_after_it_became_a_page(app: FastAPI) -> None:
    many = [Problem(f"field{number}", "is wrong") for number in range(40)]
    answer = await refused(app, Invalid(*many), **{"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] == "gzip"
    assert "<code>field39</code>" in answer.text


async def test_former_addresses_lead_to_pages(site: Site) -> None:
    found: dict[str, Any] = {}
    for path in ("/admin/scheduler", "/ui"):
        found[path] = (await site.client.get(path, headers=HTML)).headers["location"]
    assert found == {"/admin/scheduler": "/ui/jobs", "/ui": "/"}
