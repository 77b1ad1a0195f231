"""Every page and every form, for each role: nobody does more than they may, nor is offered more, nor less."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from itertools import zip_longest
from typing import Final
from urllib.parse import parse_qs, urlsplit

import pytest

from noonday.api.callers import right_of
from noonday.control.bulk import RIGHTS as OF_ACTION
from noonday.control.bulk import Action
from noonday.domain.access import RIGHTS, Right, Role
from tests.api.people import bearer
from tests.hostile.pages import all_routes
from tests.web.furnished import Furniture, Texts, furnish, furnish_house
from tests.web.signing_in import HTML, ClosedSite

NOWHERE: Final = "00000000-0000-7000-8000-000000000000"
OWN: Final = Texts(name="own-", text="own words", service="mail", path="own")
OTHERS: Final = Texts(name="zebra-", text="zebra words", service="zebra", path="zebra")

# A page or form that is not here has nobody decided who may use it.
READING: Final[dict[str, Right | None]] = {
    "/": Right.READ,
    "/admin/scheduler": Right.READ,
    "/ui": Right.READ,
    "/ui/api": None,
    "/ui/audit": Right.ACCESS,
    "/ui/breakers": Right.READ,
    "/ui/calendar": Right.READ,
    "/ui/jobs": Right.READ,
    "/ui/jobs/{job}": Right.READ,
    "/ui/jobs/{job}/cancel": Right.OPERATE,
    "/ui/jobs/{job}/configuration": Right.READ,
    "/ui/jobs/{job}/delete": Right.EDIT,
    "/ui/jobs/{job}/dependencies": Right.READ,
    "/ui/jobs/{job}/edit": Right.EDIT,
    "/ui/jobs/{job}/history": Right.READ,
    "/ui/jobs/{job}/pause": Right.OPERATE,
    "/ui/jobs/{job}/revert": Right.EDIT,
    "/ui/jobs/{job}/run": Right.RUN,
    "/ui/jobs/{job}/runs": Right.READ,
    "/ui/jobs/{job}/schedule": Right.READ,
    "/ui/jobs/{job}/triggers": Right.READ,
    "/ui/load": Right.READ,
    "/ui/load/hour": Right.READ,
    "/ui/load/rebalance": Right.OPERATE,
    "/ui/login": None,
    "/ui/new": Right.EDIT,
    "/ui/queues": Right.READ,
    "/ui/runs": Right.READ,
    "/ui/runs/{execution}": Right.READ,
    "/ui/runs/{execution}/output.txt": Right.READ,
    "/ui/settings": Right.READ,
    "/ui/static/{version}/{name}": None,
    "/ui/timeline": Right.READ,
    "/ui/triggers": Right.READ,
    "/ui/workers": Right.READ,
    "/ui/workers/drain": Right.MANAGE,
}
SENDING: Final[dict[str, Right | None]] = {
    "/ui/breakers/reset": Right.OPERATE,
    "/ui/bulk": Right.RUN,  # and what its action needs
    "/ui/jobs/{job}/cancel": Right.OPERATE,
    "/ui/jobs/{job}/delete": Right.EDIT,
    "/ui/jobs/{job}/disable": Right.OPERATE,
    "/ui/jobs/{job}/edit": Right.EDIT,
    "/ui/jobs/{job}/enable": Right.OPERATE,
    "/ui/jobs/{job}/pause": Right.OPERATE,
    "/ui/jobs/{job}/resume": Right.OPERATE,
    "/ui/jobs/{job}/retry": Right.RUN,
    "/ui/jobs/{job}/revert": Right.EDIT,
    "/ui/jobs/{job}/run": Right.RUN,
    "/ui/jobs/{job}/skip-next": Right.OPERATE,
    "/ui/jobs/{job}/triggers": Right.EDIT,
    "/ui/jobs/{job}/triggers/remove": Right.EDIT,
    "/ui/load/rebalance": Right.MANAGE,
    "/ui/login": None,
    "/ui/logout": None,
    "/ui/new": Right.EDIT,
    "/ui/new/example": Right.EDIT,
    "/ui/preview": Right.READ,
    "/ui/runs/{execution}/again": Right.RUN,
    "/ui/runs/{execution}/cancel": Right.OPERATE,
    "/ui/settings/keys": Right.ACCESS,
    "/ui/settings/keys/{key}/revoke": Right.ACCESS,
    "/ui/settings/reader": Right.READ,
    "/ui/settings/sessions/end": Right.READ,
    "/ui/settings/services": Right.MANAGE,
    "/ui/settings/services/{service}/remove": Right.MANAGE,
    "/ui/triggers/fire": Right.RUN,
    "/ui/triggers/jobs/{job}/remove": Right.EDIT,
    "/ui/triggers/register": Right.EDIT,
    "/ui/workers/drain": Right.MANAGE,
    "/ui/workers/move": Right.MANAGE,
    "/ui/workers/resume": Right.MANAGE,
}
_ASIDE: Final = ("/ui/static/", "/ui/login", "/ui/api", "/admin/", "/ui/queues")  # no pages of their own
# What each page has anew: its token, and the number of the newest event, whoever it is about.
_FRESH: Final = re.compile(r'form[-_]token" (content|value)="\w+"| data-position="\d+"')
_BULK: Final = ("POST", "/ui/bulk")
# Before the first job; if jobs can be moved; if one is signed in elsewhere too.
_SELDOM: Final = {"/ui/new/example", "/ui/load/rebalance", "/ui/settings/sessions/end"}
_NO_BUTTON: Final = {"/ui/bulk", "/ui/login", "/ui/preview", *_SELDOM}  # or one for each action; for scripts


ROUTES: Final = all_routes()


def rights(method: str) -> dict[str, Right | None]:
    return {one.path: min(right_of(one), key=str) for one in ROUTES if method in (one.methods or ())}


def test_somebody_has_decided_who_may_use_each_page_and_form() -> None:
    assert rights("GET") == READING
    assert rights("POST") == SENDING
    assert {method for one in ROUTES for method in one.methods or ()} == {"GET", "POST"}
    assert [one.path for one in ROUTES if len(right_of(one)) != 1] == []


async def furnished(site: ClosedSite) -> Furniture:
    site.client.headers.update(bearer(await site.key(Role.ADMIN)))
    things = await furnish(site, OWN)
    await furnish_house(site, OWN)
    del site.client.headers["authorization"]
    return things


def role_of(role: Role) -> tuple[Role, str | None]:
    return role, "mail" if role is Role.SERVICE else None


def filled(path: str) -> str:
    return re.sub(r"\{\w+\}", NOWHERE, path)


@pytest.mark.parametrize("role", Role)
async def test_whoever_may_not_is_refused_and_whoever_may_is_not(closed: ClosedSite, role: Role) -> None:
    await closed.as_a(*role_of(role))
    found = {}
    for path, right in READING.items():
        found["GET", path, right] = await closed.client.get(filled(path), headers=HTML)
    for path, right in SENDING.items():
        if right is not None:
            form = {"instance": "none", "action": "run"}
            found["POST", path, right] = await closed.send(filled(path), form)
    assert {status for one in found.values() if (status := one.status_code) >= 500} == set()
    refused = {way for way, answer in found.items() if answer.status_code in (401, 403)}
    assert refused == {way for way in found if way[2] is not None and way[2] not in RIGHTS[role]}


@pytest.mark.parametrize("action", Action)
async def test_bulk_needs_what_its_action_needs(closed: ClosedSite, action: Action) -> None:
    for role in Role:
        await closed.as_a(*role_of(role))
        for form in ({"action": action.value, "job": [NOWHERE]}, {"one": f"{action.value}:{NOWHERE}"}):
            status = (await closed.send("/ui/bulk", form)).status_code
            assert (status == 403) is (OF_ACTION[action] not in RIGHTS[role]), (role, status)


async def test_nobody_gets_further_than_the_door(closed: ClosedSite) -> None:
    for path, right in READING.items():
        if right is not None:
            answer = await closed.client.get(filled(path), headers=HTML)
            assert answer.headers["location"].startswith("/ui/login"), path
    for path, right in SENDING.items():
        if right is not None:
            answer = await closed.send(filled(path))
            assert answer.headers["location"].startswith("/ui/login"), path


class Offers(HTMLParser):
    """Where the links and forms of a page lead: method, path, and the bulk action if it is one."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: set[tuple[str, str, str]] = set()
        self._form: tuple[str, str] | None = None
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "a" and given.get("href", "").startswith("/"):
            self._add("GET", given["href"])
        elif tag == "form":
            self._form = (given.get("method", "get").upper(), given.get("action", ""))
            if self._form != _BULK:
                self._add(*self._form)
        elif tag == "button" and self._form == _BULK:
            self.found.add((*_BULK, given["value"].partition(":")[0]))

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._form = None

    def _add(self, method: str, address: str) -> None:
        parts = urlsplit(address)
        self.found.add((method, parts.path, ""))
        if parts.query and "{" in parts.query:
            raise AssertionError(f"a template shows through: {parse_qs(parts.query)}")


def route_of(method: str, path: str) -> str | None:
    for one in ROUTES:
        if method in (one.methods or ()) and one.path_regex.match(path):
            return one.path
    return None


async def offered(site: ClosedSite, things: Furniture, role: Role) -> tuple[set[str], list[str]]:
    """The forms that a role finds anywhere, and what it is offered although it may not."""
    found: set[str] = set()
    wrong: list[str] = []
    for path, right in READING.items():
        if path.startswith(_ASIDE) or path == "/ui" or right not in RIGHTS[role]:
            continue
        more = ["/ui/triggers?path=/hooks/own"] if path == "/ui/triggers" else []
        for address in things.addresses(path) + more:
            answer = await site.client.get(address, headers=HTML)
            assert answer.status_code == 200, (address, answer.status_code)
            if path.endswith(".txt"):
                continue
            for method, target, verb in Offers(answer.text).found:
                route = route_of(method, target)
                if route is None:
                    assert not target.startswith("/ui/") or "/static/" in target, (address, target)
                    continue
                needed = (SENDING if method == "POST" else READING)[route]
                wanted = {needed} | ({OF_ACTION[Action(verb)]} if verb else set())
                if not wanted - {None} <= RIGHTS[role]:
                    wrong.append(f"{address}: {method} {target} {verb}")
                if method == "POST":
                    found.add(route + (f" {verb}" if verb else ""))
    return found, wrong


@pytest.mark.parametrize("role", Role)
async def test_each_sees_all_that_they_may_do_and_nothing_else(closed: ClosedSite, role: Role) -> None:
    things = await furnished(closed)
    await closed.as_a(*role_of(role))
    found, wrong = await offered(closed, things, role)
    assert wrong == []
    may = {path for path, right in SENDING.items() if right is None or right in RIGHTS[role]} - _NO_BUTTON
    actions = {f"/ui/bulk {action.value}" for action in Action if OF_ACTION[action] in RIGHTS[role]}
    assert found - _SELDOM == may | actions


async def test_what_others_do_changes_nothing_that_a_service_sees(any_closed: ClosedSite) -> None:
    """Neither names nor counts: all its pages, and what its scripts ask for, stay the same to the letter."""
    site = any_closed
    things = await furnished(site)
    things = replace(things, jobs=things.jobs[:1], runs=things.runs[1:3])
    await site.claim()
    proof = bearer(await site.key(Role.ADMIN))
    mine = await site.key(Role.SERVICE, "mail")
    instant = site.clock.at
    before = await _seen(site, things, mine)
    site.client.headers.update(proof)
    others = await furnish(site, OTHERS)
    del site.client.headers["authorization"]
    site.clock.at = instant
    after = await _seen(site, things, mine)
    changed = {address: _change(before[address], after[address]) for address in before}
    assert {address: change for address, change in changed.items() if change} == {}
    for path in READING:
        if "{job}" in path or "{execution}" in path:
            for address in others.addresses(path):
                assert (await site.client.get(address, headers=HTML)).status_code in (403, 404), address


def _change(before: str, after: str) -> str | None:
    lines = zip_longest(before.splitlines(), after.splitlines())
    return next((f"{old} -> {new}" for old, new in lines if old != new), None)


async def _seen(site: ClosedSite, things: Furniture, proof: str) -> dict[str, str]:
    assert (await site.sign_in(proof)).status_code == 303
    await site.page("/ui/settings")  # takes the note
    asked = [
        "/api/v2/jobs?q=e",
        "/api/v2/timeline",
        "/api/v2/load",
        "/api/v2/stats",
        "/api/v2/forecast",
        "/ui/jobs?q=zebra",
        "/ui/runs?q=status:failed",
        "/ui/timeline?span=7d&group=tag",
        "/ui/load?show=failed",
    ]
    for path, right in READING.items():
        if right in RIGHTS[Role.SERVICE] and not path.startswith(_ASIDE):
            asked += things.addresses(path)
    found = {}
    for address in asked:
        answer = await site.client.get(address, headers=HTML)
        assert answer.status_code < 400, (address, answer.text[:300])
        found[address] = _FRESH.sub("", answer.text)
    return found


@pytest.mark.parametrize(
    ("role", "verbs"),
    [
        (Role.VIEWER, ""),
        (Role.SERVICE, "run "),
        (Role.OPERATOR, "run pause resume"),
        (Role.ADMIN, "run pause resume"),
    ],
)
async def test_the_palette_knows_what_its_reader_may_do(closed: ClosedSite, role: Role, verbs: str) -> None:
    await closed.as_a(*role_of(role))
    page = await closed.page("/ui/settings")
    assert f'data-verbs="{verbs}"' in page
    assert ('href="/ui/audit"' in page) is (role is Role.ADMIN)
