"""Whoever shows many bad keys or tokens waits; whoever is known does not."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.datastructures import Headers

from noonday.api.door import guesses
from noonday.api.door.guesses import Guesses, TooManyGuesses, address_of
from noonday.domain.access import Caller, Role
from noonday.domain.errors import Unidentified
from tests.api.caller import StillClock
from tests.api.people import bearer, claims, token
from tests.web.signing_in import ClosedSite

WHOAMI = "/api/v2/whoami"
BAD = "nd_aaaaaaaa_" + "b" * 40


async def statuses(site: ClosedSite, count: int, proof: str = BAD) -> list[int]:
    return [(await site.client.get(WHOAMI, headers=bearer(proof))).status_code for _ in range(count)]


async def test_a_key_is_guessed_ten_times_a_minute_and_no_more(closed: ClosedSite) -> None:
    assert await statuses(closed, 12) == [401] * 10 + [429] * 2
    answer = await closed.client.get(WHOAMI, headers=bearer(BAD))
    assert answer.headers["retry-after"] == "6"
    assert "try again in 6 s" in answer.json()["detail"]
    assert await statuses(closed, 1, BAD.replace("aaaaaaaa", "cccccccc")) == [401]  # another key
    closed.clock.advance(seconds=6)
    assert await statuses(closed, 2) == [401, 429]


async def test_an_address_shows_two_bad_proofs_a_second_and_no_more(closed: ClosedSite) -> None:
    known, fresh = await closed.key(), await closed.key()
    assert await statuses(closed, 1, known) == [200]
    assert await statuses(closed, 122, "no-token") == [401] * 120 + [429] * 2
    assert await statuses(closed, 1, fresh) == [429]  # a guess that came out would be none
    assert await statuses(closed, 1, known) == [200]  # nobody shuts others out
    assert await closed.status("/health/live") == 200
    closed.clock.advance(seconds=1)
    assert await statuses(closed, 2, fresh) == [200, 200]


async def test_a_known_key_that_was_revoked_is_a_guess_again(closed: ClosedSite) -> None:
    made, text = await closed.keys.create("ada", Role.VIEWER, by="tests")
    assert await statuses(closed, 1, text) == [200]
    await closed.keys.revoke(made.id)
    assert await statuses(closed, 12, text) == [401] * 10 + [429] * 2


async def test_the_door_counts_with_the_api_and_says_so_in_words(closed: ClosedSite) -> None:
    assert await statuses(closed, 10) == [401] * 10
    answer = await closed.sign_in(BAD)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "6"
    assert "try again in 6 seconds" in answer.text
    assert (await closed.sign_in(await closed.key())).status_code == 303


async def test_nobody_and_cookies_are_not_counted(closed: ClosedSite) -> None:
    await closed.as_a(Role.VIEWER)
    await closed.send("/ui/logout")
    assert [await closed.status() for _ in range(130)] == [401] * 130
    assert (await closed.sign_in(await closed.key())).status_code == 303


async def test_a_good_token_without_a_role_is_no_guess(closed: ClosedSite) -> None:
    assert await statuses(closed, 130, token(claims(role="gardener"))) == [403] * 130


async def test_only_so_many_are_remembered(monkeypatch: pytest.MonkeyPatch, clock: StillClock) -> None:
    monkeypatch.setattr(guesses, "_MOST", 5)

    async def identify(headers: Headers) -> Caller | None:
        if "good" in headers["authorization"]:
            return Caller(name="ada", role=Role.VIEWER)
        raise Unidentified

    made = Guesses(identify, clock)
    for number in range(50):
        with pytest.raises(Unidentified):
            await made(Headers(bearer("x")), f"10.0.0.{number}")
        await made(Headers(bearer(f"good{number}")), "10.0.0.1")
    assert (len(made._buckets), len(made._good)) == (5, 5)
    for _ in range(119):
        with pytest.raises(Unidentified):
            await made(Headers(bearer("x")), "10.0.0.49")
    with pytest.raises(TooManyGuesses):
        await made(Headers(bearer("x")), "10.0.0.49")


@pytest.mark.parametrize(
    ("client", "counted"),
    [
        (("192.0.2.7", 1), "192.0.2.7"),
        (("2001:db8:1:2:3::4", 1), "2001:db8:1:2::/64"),
        (("fe80::1%eth0", 1), "fe80::/64"),
        (("::ffff:192.0.2.7", 1), "192.0.2.7"),
        (("testclient", 1), "testclient"),
        (None, ""),
    ],
)
def test_a_network_of_one_owner_is_one_address(client: Any, counted: str) -> None:
    assert address_of({"client": client}) == counted
