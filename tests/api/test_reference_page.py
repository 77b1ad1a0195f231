"""`/docs` and `/openapi.json`: whole without script, network or login, and nothing in them can act."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from html.parser import HTMLParser
from typing import Any, cast

import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient
from starlette.datastructures import Headers

from noonday.api.app import create_app
from noonday.api.html import inline, tag
from noonday.api.reference import page
from noonday.api.services import ApiServices
from noonday.domain.access import Caller
from tests.api.caller import StillClock
from tools.openapi_diff import METHODS


class Page(HTMLParser):
    """What is in a page, and that every tag that opens is closed in its turn."""

    VOID = frozenset({"br", "hr", "input", "link", "meta"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def values(self, attribute: str) -> list[str]:
        return [attrs[attribute] or "" for _, attrs in self.tags if attribute in attrs]


async def _nobody(_: Headers) -> Caller | None:
    return None


@pytest.fixture(scope="module")
def app() -> FastAPI:
    """Wants everybody to say who they are. It needs no database to describe itself."""
    nothing = cast(Any, None)
    return create_app(ApiServices(db=nothing, clock=StillClock(), status=nothing, identify=_nobody))


@pytest.fixture
async def stranger(app: FastAPI) -> AsyncIterator[AsyncClient]:
    """Calls without saying who it is."""
    async with AsyncClient(transport=ASGITransport(app=app), base_url="http://localhost:8060") as client:
        yield client


async def test_it_describes_every_operation_and_shape_without_a_login(stranger: AsyncClient) -> None:
    document = (await stranger.get("/openapi.json")).json()
    answer = await stranger.get("/docs")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    shown = Page(answer.text)
    ids = shown.values("id")
    assert len(ids) == len(set(ids))
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                assert item[method]["operationId"] in ids
                assert path in shown.text
                assert item[method]["summary"].replace("`", "") in shown.text
    assert {f"schema-{name}" for name in document["components"]["schemas"]} <= set(ids)
    assert (await stranger.get("/api/v2/jobs")).status_code == 401, "the rest wants a login"


async def test_every_link_of_the_page_leads_somewhere(stranger: AsyncClient) -> None:
    shown = Page((await stranger.get("/docs")).text)
    ids = set(shown.values("id"))
    for address in shown.values("href") + shown.values("src"):
        if address.startswith("#"):
            assert address[1:] in ids, address
        elif address != "data:,":
            assert (await stranger.get(f"/{address}")).status_code == 200, address


async def test_the_page_loads_nothing_from_elsewhere_and_runs_nothing_inline(stranger: AsyncClient) -> None:
    answer = await stranger.get("/docs")
    shown = Page(answer.text)
    assert not [link for link in shown.values("href") + shown.values("src") if "//" in link]
    assert not [
        attrs for _, attrs in shown.tags for name in attrs if name.startswith("on") or name == "style"
    ]
    assert [attrs for name, attrs in shown.tags if name == "script"] == [
        {"src": "docs/reference.js", "defer": None}
    ]
    assert "style" not in {name for name, _ in shown.tags}
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
    assert "unsafe" not in policy
    for name in ("reference.css", "reference.js"):
        text = (await stranger.get(f"/docs/{name}")).text
        assert not re.search(r"https?://|//[a-z]|@import|url\(|eval|innerHTML", text), name


async def test_the_page_follows_the_readers_light_and_has_labels(stranger: AsyncClient) -> None:
    style = (await stranger.get("/docs/reference.css")).text
    assert "prefers-color-scheme: dark" in style
    shown = Page((await stranger.get("/docs")).text)
    html = dict(shown.tags)["html"]
    assert html["lang"] == "en"
    assert "search" in shown.values("for")
    assert dict(shown.tags)["nav"]["aria-label"] == "Contents"


async def test_who_has_read_it_is_told_that_nothing_changed(stranger: AsyncClient) -> None:
    for path in ("/docs", "/openapi.json", "/docs/reference.css"):
        first = await stranger.get(path)
        again = await stranger.get(path, headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")


async def test_it_answers_only_under_its_own_names(stranger: AsyncClient) -> None:
    for path in ("/docs", "/openapi.json"):
        assert (await stranger.get(path, headers={"Host": "evil.example"})).status_code == 421


def test_words_in_the_document_cannot_become_markup() -> None:
    evil = "</code><script>alert(1)</script>\"'&"
    operation = {
        "tags": ["t"],
        "operationId": "t_one",
        "summary": evil,
        "description": f"`{evil}` **{evil}**",
        "parameters": [{"name": evil, "in": "query", "schema": {"type": "string", "pattern": evil}}],
        "requestBody": {
            "content": {"application/json": {"schema": {}, "examples": {evil: {"value": {evil: evil}}}}}
        },
        "responses": {"200": {"description": evil, "content": {evil: {"schema": {"enum": [evil]}}}}},
    }
    text = page(
        {
            "info": {"title": evil, "version": evil, "summary": evil},
            "tags": [{"name": "t", "description": evil}],
            "paths": {f"/{evil}": {"get": operation}},
            "components": {"schemas": {"S": {"properties": {evil: {"type": "string", "default": evil}}}}},
        }
    )
    shown = Page(text)
    assert [attrs for name, attrs in shown.tags if name == "script"] == [
        {"src": "docs/reference.js", "defer": None}
    ]
    assert shown.text.count("<script>alert(1)</script>") > 10, "shown as text"


def test_html_is_escaped_unless_it_was_made_here() -> None:
    assert (
        tag("p", "a < b", tag("b", "&"), None, ["x", tag("i", "y")]) == "<p>a &lt; b<b>&amp;</b>x<i>y</i></p>"
    )
    assert tag("a", "x", href='"><script>', hidden=True, title=None) == (
        '<a href="&quot;&gt;&lt;script&gt;" hidden>x</a>'
    )
    assert inline("`a<b` and **c&d** <e>") == ("<code>a&lt;b</code> and <strong>c&amp;d</strong> &lt;e&gt;")


async def test_the_document_that_is_served_is_the_one_of_the_routes(stranger: AsyncClient) -> None:
    served = (await stranger.get("/openapi.json")).json()
    assert json.dumps(served)
    assert served["paths"]["/api/v2/jobs"]["post"]["operationId"] == "jobs_create"
