"""Forms carry a token that only a page of ours can have made for the browser that sends it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files

import pytest

from noonday.api.door.cookies import SESSION_COOKIE
from noonday.api.door.form_tokens import FORM_COOKIE, FORM_FIELD, FORM_HEADER, form_token
from noonday.domain.access import Role
from noonday.web.templating import templates
from tests.api.people import bearer
from tests.web.signing_in import HTML, ClosedSite
from tests.web.site import HOME, Site

READER = "/ui/settings/reader"
DARK = {"theme": "dark", "zone": "utc"}
OURS = {**HTML, "Origin": HOME, "Sec-Fetch-Site": "same-origin"}


class Forms(HTMLParser):
    """The fields of each form that posts, and the token that scripts find."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.posts: list[dict[str, str]] = []
        self.token = ""
        self._inside = False
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._inside = given.get("method", "get").lower() == "post"
            if self._inside:
                self.posts.append({})
        elif tag == "input" and self._inside:
            self.posts[-1][given.get("name", "")] = given.get("value", "")
        elif tag == "meta" and given.get("name") == "form-token":
            self.token = given["content"]

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "form"


async def status(site: Site, token: str, path: str = READER) -> int:
    return (await site.client.post(path, data=DARK | {FORM_FIELD: token}, headers=OURS)).status_code


def test_no_form_of_a_template_is_without_it() -> None:
    names = [one.name for one in (files("noonday.web") / "templates").iterdir() if one.name.endswith(".html")]
    assert len(names) > 30
    made = templates()
    assert made.loader is not None
    for name in names:
        source = made.loader.get_source(made, name)[0]
        written = made.preprocess(source, name)
        posting = re.findall(
            r"<form\b[^>]*\bmethod=.?post[^>]*>(.{0,60})", written, re.IGNORECASE | re.DOTALL
        )
        assert all(rest.startswith(f'<input type="hidden" name="{FORM_FIELD}"') for rest in posting), name


async def test_an_open_scheduler_binds_it_to_a_cookie_of_the_browser(site: Site) -> None:
    page = await site.client.get("/ui/settings", headers=HTML)
    [line] = page.headers.get_list("set-cookie")
    assert line.startswith(f"{FORM_COOKIE}=")
    assert {"HttpOnly", "SameSite=lax", "Path=/"} <= {part.strip() for part in line.split(";")}
    forms = Forms(page.text)
    assert forms.posts
    assert len({form[FORM_FIELD] for form in forms.posts} | {forms.token}) == 1
    assert await status(site, forms.token) == 303
    again = await site.client.get("/ui/settings", headers=HTML)
    assert "set-cookie" not in again.headers or FORM_COOKIE not in again.headers["set-cookie"]
    assert Forms(again.text).token != forms.token  # so that packed answers tell nothing of it
    assert await status(site, forms.token) == 303


@pytest.mark.parametrize("token", ["", "x", "0" * 80, "é" * 80, "\x00" * 80])
async def test_without_it_nothing_is_done(site: Site, token: str) -> None:
    await site.page("/ui/settings")
    assert await status(site, token) == 403
    for path in ("/ui/login", "/ui/logout", "/ui/bulk", "/ui/preview", "/ui/nowhere"):
        assert await status(site, token, path) in (303, 403)
    assert "noonday_theme" not in site.client.cookies


async def test_without_a_cookie_no_token_is_good(site: Site) -> None:
    assert await status(site, form_token("")) == 403
    assert await status(site, form_token("x")) == 403


async def test_it_is_good_for_one_session_and_ends_with_it(closed: ClosedSite) -> None:
    await closed.as_a(Role.OPERATOR)
    first = Forms(await closed.page("/ui/settings")).token
    assert await status(closed, first) == 303
    await closed.as_a(Role.OPERATOR)
    assert await status(closed, first) == 403
    second = Forms(await closed.page("/ui/settings")).token
    closed.client.cookies.delete(SESSION_COOKIE)
    assert await status(closed, second) == 303  # to the door
    assert (await closed.client.post(READER, data=DARK, headers=OURS)).headers["location"] == "/ui/login"


async def test_the_form_of_the_door_has_one_too(closed: ClosedSite) -> None:
    proof = await closed.key()
    form = {"proof": proof, "next": "/ui/runs"}
    refused = await closed.client.post("/ui/login", data=form, headers=OURS)
    assert refused.headers["location"] == "/ui/login"
    assert closed.cookie is None
    [fields] = Forms(await closed.page("/ui/login")).posts
    good = await closed.client.post("/ui/login", data=form | {FORM_FIELD: fields[FORM_FIELD]}, headers=OURS)
    assert good.headers["location"] == "/ui/runs"


async def test_a_session_changes_nothing_over_the_api_without_it(closed: ClosedSite) -> None:
    await closed.as_a(Role.ADMIN)
    path = "/api/v2/jobs/none/pause"
    for told in ({"Origin": HOME}, {"Sec-Fetch-Site": "same-origin"}):
        refused = await closed.call("POST", path, headers=told)
        assert (refused.status_code, refused.json()["type"]) == (403, "urn:noonday:problem:form-token")
        token = Forms(await closed.page("/ui/settings")).token
        assert (await closed.call("POST", path, headers=told | {FORM_HEADER: token})).status_code == 404
    admin = bearer(await closed.key(Role.ADMIN))
    assert (await closed.call("POST", path, headers=admin)).status_code == 404


async def test_what_was_sent_from_an_old_page_can_be_sent_again(site: Site) -> None:
    typed = {"name": '<b>"', "url": "https://a.example", "description": "one\r\ntwo", FORM_FIELD: "old"}
    answer = await site.client.post("/ui/settings/services?x=%26", data=typed, headers=OURS)
    assert answer.status_code == 403
    assert "This page was out of date" in answer.text
    [kept] = Forms(answer.text).posts
    assert {name: kept[name] for name in ("name", "url", "description")} == {
        name: typed[name] for name in ("name", "url", "description")
    }
    assert 'action="/ui/settings/services?x=%26"' in answer.text
    good = await site.client.post("/ui/settings/services", data=kept | {"name": "mail"}, headers=OURS)
    assert good.status_code == 303


async def test_what_no_page_of_ours_has_sent_is_not_offered_again(site: Site) -> None:
    answer = await site.client.post(READER, data=DARK, headers=HTML)
    assert answer.status_code == 403
    assert "Send it again" not in answer.text
