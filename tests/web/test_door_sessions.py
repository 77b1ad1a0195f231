"""Signing in with a browser: a cookie stands for a key or a token, and never for longer than that is good."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import urljoin, urlsplit

import pytest
from sqlalchemy import func, select, update

from noonday.api.door.cookies import SESSION_COOKIE
from noonday.control.sessions import Sessions
from noonday.domain.access import Caller, Role
from noonday.domain.keys import digest_of
from noonday.store import sessions
from noonday.store.database import Database
from noonday.store.front_tables import api_keys
from noonday.store.front_tables import sessions as table
from tests.api.caller import StillClock
from tests.api.people import SECONDS, bearer, claims, token
from tests.web.signing_in import HTML, ClosedSite
from tests.web.site import HOME, Site, browser_of, services_of

TRICKS = (
    "https://x.example",
    "https:x.example",
    "HTTPS:/x.example",
    "//x.example",
    "///x.example",
    "/\\x.example",
    "\\\\x.example",
    "/\t/x.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "/a\nb",
    "/a\r\nX-Injected: 1",
    "ui/jobs",
    "?q=a",
    "/" + "a" * 3000,
    "/api/v2/keys",
    "/\u202e/x.example",
    "",
)


async def test_a_page_asks_nobody_in_particular_to_sign_in_and_leads_back(closed: ClosedSite) -> None:
    answer = await closed.client.get("/ui/jobs?q=tag:a&offset=50", headers=HTML)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/ui/login?next=/ui/jobs%3Fq%3Dtag%3Aa%26offset%3D50"
    assert 'value="/ui/jobs?q=tag:a&amp;offset=50"' in await closed.page(answer.headers["location"])
    answer = await closed.sign_in(await closed.key(), "/ui/jobs?q=tag:a&offset=50")
    assert answer.headers["location"] == "/ui/jobs?q=tag:a&offset=50"
    assert "tag:a" in await closed.page(answer.headers["location"])


async def test_the_cookie_opens_the_api_too_under_the_name_and_role_of_the_key(closed: ClosedSite) -> None:
    assert await closed.status() == 401
    await closed.as_a(Role.OPERATOR)
    me = await closed.get("/api/v2/whoami")
    assert (me["name"], me["role"]) == ("the operator", "operator")
    assert await closed.status("/api/v2/keys") == 403


async def test_a_service_sees_its_own_jobs_alone(closed: ClosedSite) -> None:
    await closed.as_a(Role.SERVICE, "email-service")
    assert (await closed.get("/api/v2/whoami"))["service"] == "email-service"


async def test_no_script_reads_the_cookie_and_it_goes_to_our_own_pages_alone(closed: ClosedSite) -> None:
    answer = await closed.sign_in(await closed.key())
    words = _cookie(answer.headers.get_list("set-cookie"))
    assert {"HttpOnly", "SameSite=lax", "Path=/", f"Max-Age={12 * 3600}"} <= words
    assert "Secure" not in words
    headers = closed.of_our_page() | {"Origin": "https://localhost:8060"}
    form = {"proof": await closed.key()}
    answer = await closed.client.post("https://localhost:8060/ui/login", data=form, headers=headers)
    assert "Secure" in _cookie(answer.headers.get_list("set-cookie"))


async def test_only_a_digest_of_the_cookie_is_kept(closed: ClosedSite) -> None:
    await closed.as_a(Role.VIEWER)
    rows = await closed.db.read(lambda conn: conn.execute(select(table)).mappings().all())
    assert closed.cookie
    assert closed.cookie not in repr(rows)
    assert [row["id"] for row in rows] == [digest_of(closed.cookie)]


async def test_it_ends_after_twelve_hours(any_closed: ClosedSite) -> None:
    await any_closed.as_a(Role.VIEWER)
    any_closed.clock.advance(hours=11, minutes=59)
    assert await any_closed.status() == 200
    any_closed.clock.advance(minutes=1)
    assert await any_closed.status() == 401


async def test_it_ends_with_its_key(any_closed: ClosedSite) -> None:
    made, text = await any_closed.keys.create("ada", Role.ADMIN, by="tests")
    await any_closed.sign_in(text)
    assert await any_closed.status() == 200
    await any_closed.keys.revoke(made.id)
    assert await any_closed.status() == 401


async def test_it_lasts_no_longer_than_the_key_or_the_token(any_closed: ClosedSite) -> None:
    soon = any_closed.clock.now().replace(hour=13)
    _, text = await any_closed.keys.create("ada", Role.ADMIN, expires_at=soon, by="tests")
    for proof in (text, token(claims(exp=SECONDS + 3600))):
        await any_closed.sign_in(proof)
        stored = await Sessions(any_closed.db, any_closed.clock).find(any_closed.cookie or "")
        assert stored is not None
        assert stored.expires_at == soon


async def test_signing_out_ends_it_for_good(any_closed: ClosedSite) -> None:
    await any_closed.as_a(Role.VIEWER)
    cookie = any_closed.cookie
    where, note = await any_closed.obeyed("/ui/logout")
    assert (where, note) == ("/ui/login", "You are signed out.")
    assert any_closed.cookie is None
    assert cookie
    kept = {"Cookie": f"{SESSION_COOKIE}={cookie}"}
    assert (await any_closed.client.get("/api/v2/whoami", headers=kept)).status_code == 401


async def test_signing_in_again_leaves_one_session(closed: ClosedSite) -> None:
    await closed.as_a(Role.VIEWER)
    await closed.as_a(Role.OPERATOR)
    count = select(func.count()).select_from(table)
    assert await closed.db.read(lambda conn: conn.execute(count).scalar_one()) == 1


async def test_a_bad_proof_is_told_at_the_field_and_not_shown_again(closed: ClosedSite) -> None:
    old = token(claims(exp=SECONDS - 60))
    for proof in ("nd_wrong", "nd_aaaaaaaa_" + "a" * 40, "two words", "\u00fc", "a.b.c", "x" * 9000, old, ""):
        answer = await closed.sign_in(proof)
        assert answer.status_code == 422, proof
        assert 'aria-invalid="true"' in answer.text
        assert "set-cookie" not in answer.headers
        assert not proof or proof not in answer.text


async def test_a_token_without_a_role_here_is_told_why(closed: ClosedSite) -> None:
    answer = await closed.sign_in(token(claims(role="gardener")))
    assert answer.status_code == 422
    assert "names no role of this scheduler" in answer.text


async def test_it_leads_to_no_other_site(closed: ClosedSite) -> None:
    proof = await closed.key()
    for next in TRICKS:
        answer = await closed.sign_in(proof, next)
        assert answer.headers["location"] == "/", next
        answer = await closed.client.get("/ui/login", params={"next": next}, headers=HTML)
        assert answer.headers["location"] == "/", next


@pytest.mark.parametrize(
    "next", ["/ui/jobs?q=//x.example", "/%2f%2fx.example", "/ui/jobs/%0d%0aX-Injected:1"]
)
async def test_an_address_of_ours_is_kept_to_the_letter(closed: ClosedSite, next: str) -> None:
    answer = await closed.sign_in(await closed.key(), next)
    assert answer.headers["location"] == next
    assert "x-injected" not in answer.headers
    assert urlsplit(urljoin(HOME, answer.headers["location"])).netloc == urlsplit(HOME).netloc


async def test_a_cookie_that_somebody_planted_never_becomes_a_session(closed: ClosedSite) -> None:
    planted = "ns_" + "a" * 64
    closed.client.cookies.set(SESSION_COOKIE, planted, domain="localhost.local", path="/")
    await closed.as_a(Role.OPERATOR)
    assert closed.client.cookies.get(SESSION_COOKIE, domain="localhost.local") != planted
    strange = {"Cookie": f"{SESSION_COOKIE}={planted}"}
    closed.client.cookies.clear()
    assert (await closed.client.get("/api/v2/whoami", headers=strange)).status_code == 401


async def test_a_key_that_runs_out_ends_its_sessions_at_once(any_closed: ClosedSite) -> None:
    made, text = await any_closed.keys.create("ada", Role.ADMIN, by="tests")
    await any_closed.sign_in(text)
    soon = any_closed.clock.now() + timedelta(seconds=1)
    of_key = update(api_keys).where(api_keys.c.id == made.id).values(expires_at=soon)
    await any_closed.db.write(lambda conn: conn.execute(of_key))
    assert await any_closed.status() == 200
    any_closed.clock.advance(seconds=1)
    assert await any_closed.status() == 401


async def test_a_cookie_changes_nothing_for_other_pages(closed: ClosedSite) -> None:
    await closed.as_a(Role.ADMIN)
    form = {"theme": "dark", "zone": "utc"}
    for headers in (
        {},
        {"Origin": "https://x.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": HOME, "Sec-Fetch-Site": "cross-site"},
    ):
        answer = await closed.call("POST", "/api/v2/scheduler/drain", {}, headers=headers)
        assert answer.status_code == 403, headers
        answer = await closed.client.post("/ui/settings/reader", data=form, headers=headers)
        assert answer.status_code == 403, headers


async def test_a_key_in_a_header_counts_and_the_cookie_beside_it_does_not(closed: ClosedSite) -> None:
    await closed.as_a(Role.VIEWER)
    admin = bearer(await closed.key(Role.ADMIN))
    assert (await closed.get("/api/v2/whoami", headers=admin))["role"] == "admin"
    assert (await closed.call("POST", "/api/v2/jobs/none/pause", headers=admin)).status_code == 404
    bad = await closed.client.get("/api/v2/whoami", headers=bearer("nd_wrong"))
    assert bad.status_code == 401


async def test_a_form_of_somebody_who_was_signed_out_is_not_obeyed(closed: ClosedSite) -> None:
    headers = {**HTML, "Origin": HOME, "Referer": f"{HOME}/ui/settings"}
    answer = await closed.client.post("/ui/settings/reader", data={"theme": "dark"}, headers=headers)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/ui/login?next=/ui/settings"
    assert "nothing was done" in await closed.page(answer.headers["location"])


async def test_a_row_with_a_role_that_is_none_opens_nothing(closed: ClosedSite) -> None:
    await closed.as_a(Role.VIEWER)
    await closed.db.write(lambda conn: conn.execute(update(table).values(role="emperor")))
    assert await closed.status() == 401


async def test_sessions_that_ran_out_are_forgotten_in_batches(db: Database, clock: StillClock) -> None:
    made = Sessions(db, clock)
    caller = Caller(name="ada", role=Role.VIEWER)
    for _ in range(3):
        await made.begin(caller)
    clock.advance(hours=12)
    _, lives = await made.begin(caller)
    assert await db.write(lambda conn: sessions.prune(conn, clock.now(), 2)) == 2
    assert await db.write(lambda conn: sessions.prune(conn, clock.now(), 2)) == 1
    assert await db.write(lambda conn: sessions.prune(conn, clock.now(), 2)) == 0
    assert await made.find(lives) is not None


async def test_where_the_scheduler_is_open_nobody_signs_in(sqlite_db: Database, clock: StillClock) -> None:
    async with browser_of(services_of(sqlite_db, clock)) as client:
        site = Site(client, sqlite_db, clock)
        assert (await client.get("/ui/login?next=/ui/jobs", headers=HTML)).headers["location"] == "/ui/jobs"
        where, note = await site.obeyed("/ui/login", {"proof": "nd_x", "next": "/ui/jobs"})
        assert (where, note) == ("/ui/jobs", "This scheduler is open: nobody has to sign in.")


def _cookie(lines: list[str]) -> set[str]:
    [line] = [line for line in lines if line.startswith(SESSION_COOKIE)]
    return {part.strip() for part in line.split(";")}
