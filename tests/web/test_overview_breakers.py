"""`/ui/breakers`: who is held back and why, found by a search, and let through again."""

from __future__ import annotations

from noonday.domain.breaker import BreakerPolicy, BreakerState, Heard
from noonday.store import breakers
from tests.factories import NOON
from tests.web.site import Site

HOME = "/ui/breakers"
POLICY = BreakerPolicy()
OPEN = Heard(failures=POLICY.threshold, error="<refused>")


async def told(site: Site, **heard: Heard) -> None:
    named = {name.replace("_", "."): what for name, what in heard.items()}
    await site.db.write(lambda conn: breakers.hear(conn, named, POLICY, NOON))


async def test_nothing_has_failed_yet(site: Site) -> None:
    assert "No call has failed so far" in await site.page(HOME)


async def test_it_shows_who_is_held_back_first(site: Site) -> None:
    await told(site, a_test=Heard(failures=1, error="503"), b_test=OPEN)
    site.clock.advance(seconds=20)
    text = await site.page(HOME)
    assert text.index("b.test") < text.index("a.test")
    assert "&lt;refused&gt;" in text
    assert "in 40 s" in text
    site.clock.advance(minutes=5)
    assert "as soon as a run is due" in await site.page(HOME)


async def test_it_finds_by_the_common_grammar(site: Site) -> None:
    await told(site, a_test=Heard(failures=1, error="503"), b_test=OPEN)
    text = await site.page(HOME, params={"q": "state:open"})
    assert "b.test" in text
    assert "a.test" not in text
    assert "Nothing matches" in await site.page(HOME, params={"q": "domain:elsewhere"})
    assert "names no field" in await site.page(HOME, 422, params={"q": "colour:red"})


async def test_a_reset_lets_calls_through(site: Site) -> None:
    await told(site, b_test=OPEN)
    where, note = await site.obeyed(f"{HOME}/reset", {"domain": "b.test"})
    assert (where, note) == (HOME, "b.test is called again; who waited for it goes on.")
    row = await site.db.read(lambda conn: breakers.get(conn, "b.test"))
    assert row is not None
    assert row.breaker.state is BreakerState.CLOSED
    assert "Reset b.test" not in await site.page(HOME)
    assert (await site.send(f"{HOME}/reset", {"domain": "c.test"})).status_code == 404


async def test_long_lists_come_in_pages(site: Site) -> None:
    await told(site, **{f"d{number:02}_test": OPEN for number in range(60)})
    first = await site.page(HOME)
    assert "1 to 50 of 60" in first
    assert 'rel="next" href="/ui/breakers?q=&amp;offset=50"' in first
    second = await site.page(HOME, params={"offset": "50"})
    assert "51 to 60 of 60" in second
    assert "d59.test" in second
    assert "d00.test" not in second


async def test_what_is_no_form_is_refused(site: Site) -> None:
    for body in (b"domain=\xff", b"domain=%ff", b"a=1&" * 3000):
        answer = await site.client.post(f"{HOME}/reset", content=body, headers=site.of_our_page())
        assert answer.status_code == 422, body[:20]
