"""`/ui/settings`: each role sees and changes there what it may, and a new key is shown once."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from sqlalchemy import func, select

from noonday.domain.access import Role
from noonday.settings.sources import Source
from noonday.store.database import Database
from noonday.store.front_tables import sessions as table
from noonday.web.agents import named
from tests.api.caller import StillClock
from tests.api.people import SECONDS, claims, token
from tests.web.signing_in import ClosedSite
from tests.web.site import Site, browser_of, services_of

HERE = "/ui/settings"


async def test_it_says_who_i_am_and_when_i_shall_be_signed_out(closed: ClosedSite) -> None:
    await closed.as_a(Role.OPERATOR)
    page = await closed.page(HERE)
    assert "the operator" in page
    assert "read, run, operate, edit" in page
    assert re.search(r'<dt>Ends</dt><dd><time datetime="[^"]+" data-tz="UTC">', page)


@pytest.mark.parametrize(
    ("role", "seen", "hidden"),
    [
        (Role.VIEWER, {"you", "services"}, {"keys", "in-force"}),
        (Role.OPERATOR, {"you", "services"}, {"keys", "in-force"}),
        (Role.ADMIN, {"you", "keys", "services", "in-force"}, set[str]()),
    ],
)
async def test_a_role_sees_what_it_may(
    closed: ClosedSite, role: Role, seen: set[str], hidden: set[str]
) -> None:
    await closed.as_a(role)
    parts = set(re.findall(r'<section id="([\w-]+)"', await closed.page(HERE)))
    assert seen <= parts
    assert not hidden & parts


async def test_whoever_may_not_change_them_is_refused(closed: ClosedSite) -> None:
    await closed.as_a(Role.OPERATOR)
    for path in ("/keys", "/keys/x/revoke", "/services", "/services/x/remove"):
        assert (await closed.send(HERE + path, {"name": "x"})).status_code == 403


async def test_a_service_sees_where_it_lives_itself_and_no_other(closed: ClosedSite) -> None:
    await closed.as_a(Role.ADMIN)
    for name in ("email-service", "billing-service"):
        await closed.obeyed(f"{HERE}/services", {"name": name, "url": f"https://{name}.example"})
    await closed.as_a(Role.SERVICE, "email-service")
    page = await closed.page(HERE)
    assert "https://email-service.example" in page
    assert "billing-service" not in page


async def test_a_new_key_is_shown_once_and_works(closed: ClosedSite) -> None:
    await closed.as_a(Role.ADMIN)
    answer = await closed.send(f"{HERE}/keys", {"name": "ci", "role": "viewer", "service": "", "days": "90"})
    assert answer.status_code == 201
    assert answer.headers["cache-control"] == "no-store"
    [secret] = re.findall(r"nd_[a-z2-7]{8}_[a-z2-7]{40}", answer.text)
    assert secret not in await closed.page(HERE)
    assert (await closed.sign_in(secret)).status_code == 303
    me = await closed.get("/api/v2/whoami")
    assert (me["name"], me["role"]) == ("ci", "viewer")


async def test_what_is_wrong_with_a_key_stands_at_its_field(closed: ClosedSite) -> None:
    await closed.as_a(Role.ADMIN)
    good = {"name": "ci", "role": "viewer", "service": "", "days": "90"}
    for field, value in {"name": "", "role": "king", "service": "x", "days": "-1"}.items():
        answer = await closed.send(f"{HERE}/keys", good | {field: value})
        assert answer.status_code == 422
        assert f'id="key-{field}-wrong"' in answer.text
        assert answer.text.count("field-error") == 1
    without = await closed.send(f"{HERE}/keys", good | {"role": "service"})
    assert 'id="key-service-wrong"' in without.text
    assert 'value="ci"' in without.text
    assert (await closed.keys.page()).total == 1


async def test_revoking_the_own_key_ends_the_session(closed: ClosedSite) -> None:
    await closed.as_a(Role.ADMIN)
    [key] = (await closed.keys.page()).items
    where, note = await closed.obeyed(f"{HERE}/keys/{key.id}/revoke")
    assert where == f"{HERE}#keys"
    assert key.prefix in note
    assert await closed.status() == 401


async def test_keys_come_in_pages(site: Site) -> None:
    for number in range(51):
        await site.send(f"{HERE}/keys", {"name": f"key-{number}", "role": "viewer", "days": ""})
    first, second = await site.page(HERE), await site.page(f"{HERE}?offset=50")
    assert "1 to 50 of 51" in first
    assert f'href="{HERE}?offset=50#keys"' in first
    assert "51 to 51 of 51" in second
    assert (first.count("Revoke for good"), second.count("Revoke for good")) == (50, 1)


async def test_a_service_is_stored_changed_and_removed_under_the_name_of_who_did_it(
    closed: ClosedSite,
) -> None:
    await closed.as_a(Role.ADMIN)
    form = {"name": "email-service", "url": "https://a.example", "description": "mail"}
    assert (await closed.obeyed(f"{HERE}/services", form))[1] == "email-service lives at https://a.example."
    await closed.obeyed(f"{HERE}/services", form | {"url": "https://b.example"})
    assert "https://b.example" in await closed.page(HERE)
    await closed.obeyed(f"{HERE}/services/email-service/remove")
    assert "https://b.example" not in await closed.page(HERE)
    trail = (await closed.get("/api/v2/audit?kind=service"))["entries"]
    assert sorted((one["action"], one["actor"]) for one in trail) == [
        (action, "the admin") for action in ("create", "delete", "update")
    ]


async def test_what_is_wrong_with_a_service_stands_at_its_field(site: Site) -> None:
    answer = await site.send(f"{HERE}/services", {"name": "email-service", "url": "ftp://x"})
    assert answer.status_code == 422
    assert 'id="service-url-wrong"' in answer.text
    answer = await site.send(f"{HERE}/services", {"name": "", "url": "https://x.example"})
    assert 'id="service-name-wrong"' in answer.text
    assert 'value="https://x.example"' in answer.text


async def test_it_shows_the_settings_in_force_and_those_that_differ(
    sqlite_db: Database, clock: StillClock
) -> None:
    lines = (Source("PORT", "8060", "default"), Source("JWT_SECRET", "********", "environment JWT_SECRET"))
    services = replace(services_of(sqlite_db, clock), settings=lambda: lines)
    async with browser_of(services) as client:
        site = Site(client, sqlite_db, clock)
        assert "<code>8060</code>" in await site.page(HERE)
        changed = await site.page(f"{HERE}?changed=true")
        assert "<code>8060</code>" not in changed
        assert "environment JWT_SECRET" in changed


async def test_theme_and_zone_are_kept_by_the_browser(site: Site) -> None:
    await site.obeyed(f"{HERE}/reader", {"theme": "dark", "zone": "other", "other": "Europe/Berlin"})
    page = await site.page(HERE)
    assert 'data-theme="dark"' in page
    assert "Times in Europe/Berlin" in page
    assert "Pages look as you chose." in page
    assert "Pages look as you chose." not in await site.page(HERE)
    await site.obeyed(f"{HERE}/reader", {"theme": "auto", "zone": "utc"})
    assert "Times in UTC" in await site.page(HERE)
    await site.obeyed(f"{HERE}/reader", {"theme": "auto", "zone": "mine"})
    assert site.client.cookies.get("noonday_zone") is None


@pytest.mark.parametrize(
    "form", [{"theme": "pink", "zone": "utc"}, {"theme": "dark", "zone": "x", "other": "Mars/Base"}]
)
async def test_a_theme_or_zone_that_is_none_is_refused(site: Site, form: dict[str, str]) -> None:
    assert (await site.send(f"{HERE}/reader", form)).status_code == 422


CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
)
PHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Safari/604.1"
)


async def test_whoever_is_signed_in_elsewhere_sees_it_and_ends_it(any_closed: ClosedSite) -> None:
    closed = any_closed
    proof, other = await closed.key(), await closed.key()
    for agent, key in ((CHROME, proof), (PHONE, other), (PHONE, proof)):
        closed.client.headers["user-agent"] = agent
        closed.client.cookies.clear()
        await closed.sign_in(key)
    page = await closed.page(HERE)
    assert page.count("Chrome on Linux") == 1
    assert page.count("Safari on iPhone") == 1  # that of the other key is somebody else's
    kept = closed.cookie
    where, note = await closed.obeyed(f"{HERE}/sessions/end")
    assert (where, note) == (f"{HERE}#you", "You are signed out in 1 other browser.")
    assert closed.cookie == kept
    assert "Sign out everywhere else" not in await closed.page(HERE)
    left = await closed.db.read(lambda conn: conn.execute(select(table.c.agent, table.c.key_id)).all())
    assert sorted(row.agent for row in left) == [PHONE, PHONE]


async def test_sessions_by_tokens_are_of_whoever_has_the_name_and_the_role(closed: ClosedSite) -> None:
    for made in (token(), token(claims(exp=SECONDS + 60)), token(claims(role="viewer"))):
        closed.client.cookies.clear()
        await closed.sign_in(made)
    assert "Sign out everywhere else" not in await closed.page(HERE)
    closed.client.cookies.clear()
    await closed.sign_in(token())
    await closed.obeyed(f"{HERE}/sessions/end")
    count = await closed.db.read(lambda conn: conn.execute(select(func.count()).select_from(table)).scalar())
    assert count == 2


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        (CHROME, "Chrome on Linux"),
        (CHROME + " Edg/140.0", "Edge on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0; rv:130.0) Gecko/20100101 Firefox/130.0", "Firefox on Windows"),
        ("curl/8.5.0", "curl/8.5.0"),
        ("", "unknown"),
    ],
)
def test_a_browser_is_called_as_people_call_it(agent: str, words: str) -> None:
    assert named(agent) == words
