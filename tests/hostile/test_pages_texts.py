"""Hostile texts on every page: they are shown as they are, and nothing becomes of them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from html.parser import HTMLParser
from typing import Final

import pytest

from noonday.domain.access import Role
from noonday.store.database import Database
from tests.api.caller import StillClock
from tests.api.people import bearer
from tests.hostile.pages import paths
from tests.web.furnished import Furniture, Texts, furnish, furnish_house
from tests.web.signing_in import HTML, ClosedSite, closed_site

PROOF: Final = "9801547"  # what a template would make of 1337*7331
TEXT: Final = (
    "</script><xss-probe>"
    '" data-probe="1" data-left="'
    "' data-probe='1' data-left='"
    "</textarea></title></style><xss-probe>"
    "--><!--]]><![CDATA[<xss-probe>"
    "<img src=x onerror=alert(1)><svg/onload=alert(1)>"
    "<a href=javascript:alert(1)>"
    "{{1337*7331}}${1337*7331}{% raw %}"
    "javascript:alert(1)//"
    "&lt;xss-probe&gt;&#60;xss-probe&#62;"
)
WILD: Final = (
    "\u202eevil\u2066\u200b\ufeff\u2028\u2029"
    "\x1b[31m<xss-probe>red\x1b[0m\x1b]0;title\x07\x08\x7f\x85"
    "half \ud800 of \udcff it" + "w" * 10_000
)
NAME: Final = "\"><xss-probe data-probe=1>'{{1337*7331}}"
HOSTILE: Final = Texts(name=NAME, text=TEXT, service="mail", path=NAME.replace("*", "x"), wild=WILD)
_NEVER: Final = {"xss-probe", "img", "iframe", "object", "embed", "base", "style", "frame"}
_LEADS: Final = {"href", "src", "action", "formaction", "poster", "xlink:href"}
_OWN: Final = ("/", "#", "?", "http://localhost:8060/")


class Seen(HTMLParser):
    """What a page has that none of ours should."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._data: list[str] | None = None
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag in _NEVER:
            self.faults.append(f"<{tag}>")
        for name, value in given.items():
            if name.startswith("on") or name in ("data-probe", "style", "srcdoc", "data-left"):
                self.faults.append(f"{tag} {name}={value[:60]}")
            if name in _LEADS and value and not value.startswith(_OWN):
                self.faults.append(f"{tag} leads to {value[:60]}")
        if tag == "script" and "src" not in given:
            self._data = []
            if given.get("type") != "application/json":
                self.faults.append("a script of its own")

    def handle_data(self, data: str) -> None:
        if self._data is not None:
            self._data.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "script" and self._data is not None:
            json.loads("".join(self._data))
            self._data = None


@pytest.fixture
async def closed(sqlite_db: Database, clock: StillClock) -> AsyncIterator[ClosedSite]:
    async with closed_site(sqlite_db, clock) as site:
        yield site


async def beset(site: ClosedSite) -> Furniture:
    """Everything that people, services and runs can write is hostile, and so is the name of who did it."""
    _, proof = await site.keys.create(TEXT[:200], Role.ADMIN, by=NAME)
    site.client.headers.update(bearer(proof))
    things = await furnish(site, HOSTILE)
    await furnish_house(site, HOSTILE)
    del site.client.headers["authorization"]
    assert (await site.sign_in(proof)).status_code == 303
    return things


async def test_no_page_takes_them_for_its_own(closed: ClosedSite) -> None:
    things = await beset(closed)
    things = replace(things, jobs=things.jobs[:1])
    shown, wrong = 0, []
    for path in paths():
        for address in things.addresses(path):
            answer = await closed.client.get(address, headers=HTML)
            assert answer.status_code == 200, (address, answer.text[:2000])
            assert PROOF not in answer.text, address
            wrong += [f"{address}: {fault}" for fault in Seen(answer.text).faults]
            shown += "xss-probe" in answer.text
    assert wrong == []
    assert shown > 25


@pytest.mark.parametrize("path", ["/ui/jobs", "/ui/runs", "/ui/audit", "/ui/breakers", "/ui/timeline"])
async def test_nor_a_search(closed: ClosedSite, path: str) -> None:
    await closed.as_a(Role.ADMIN)
    for text in (TEXT[:400], f'name:"{NAME}', f"tag:'{NAME}'", "w" * 400):
        answer = await closed.client.get(path, params={"q": text}, headers=HTML)
        assert answer.status_code in (200, 422)
        assert Seen(answer.text).faults == []
        assert PROOF not in answer.text


async def test_nor_a_refusal_or_what_was_typed(closed: ClosedSite) -> None:
    await closed.as_a(Role.ADMIN)
    typed = {
        "name": TEXT,
        "role": TEXT[:100],
        "url": TEXT,
        "config": TEXT,
        "cron_expression": TEXT,
        "kind": "url",
    }
    for path in (
        "/ui/settings/keys",
        "/ui/settings/services",
        "/ui/new",
        "/ui/preview",
        "/ui/triggers/register",
    ):
        answer = await closed.send(path, typed)
        assert answer.status_code in (200, 403, 404, 409, 422), path
        assert Seen(answer.text).faults == [], path
        assert PROOF not in answer.text, path
    old = await closed.client.post(
        "/ui/new", data=typed, headers=closed.of_our_page() | {"X-Form-Token": "old"}
    )
    assert old.status_code == 403
    assert "Send it again" in old.text
    assert Seen(old.text).faults == []


async def test_half_a_surrogate_gets_in_by_no_door(closed: ClosedSite) -> None:
    await closed.as_a(Role.ADMIN)
    token = closed.of_our_page()
    made = await closed.call(
        "POST", "/api/v2/jobs", None, content=json.dumps({"name": "a\ud800b"}), headers=token
    )
    assert made.status_code in (400, 422)
    answer = await closed.client.post("/ui/new", content=b"name=a%ED%A0%80b", headers=token)
    assert answer.status_code == 422
