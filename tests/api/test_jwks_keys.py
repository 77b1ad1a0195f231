"""Keys of an identity provider: fetched within bounds, renewed when they change, kept while it is away."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog
from aiohttp import web
from joserfc.jwk import ECKey, OctKey, RSAKey

from noonday.api.door.jwks import Jwks, fetched, keys_of
from noonday.api.door.tokens import JwtKey, Known, Tokens, secret_key
from noonday.domain.claims import BadToken
from noonday.domain.errors import Unavailable
from noonday.http_client import CallFailed
from tests.api.caller import StillClock
from tests.api.people import RULES, SECRET, judged, token

RSA, EC, NEW = RSAKey.generate_key(2048), ECKey.generate_key("P-256"), ECKey.generate_key("P-256")


def public(key: RSAKey | ECKey, **more: Any) -> dict[str, Any]:
    return {**key.as_dict(private=False), **more}


def document(*keys: dict[str, Any]) -> bytes:
    return json.dumps({"keys": keys}).encode()


class Provider:
    """Answers as it is told, on a real socket; `gate` holds its answers back."""

    def __init__(self) -> None:
        self.body = document(public(RSA, kid="a", use="sig", alg="RS256"), public(EC, kid="b"))
        self.status, self.headers, self.asked = 200, dict[str, str](), 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.url = ""
        self.told: str | None = None  # who asked

    async def answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        self.told = request.headers.get("Authorization")
        await self.gate.wait()
        return web.Response(body=self.body, status=self.status, headers=self.headers)


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    made = Provider()
    app = web.Application()
    app.router.add_get("/{path:.*}", made.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/keys"
    yield made
    await runner.cleanup()


def by_b(key: ECKey = EC, kid: str | None = "b") -> str:
    return token(key=key, alg="ES256", kid=kid)


async def test_it_checks_tokens_with_the_keys_it_fetched_once(provider: Provider, clock: StillClock) -> None:
    jwks = Jwks(provider.url, clock)
    for good in (token(key=RSA, alg="RS256", kid="a"), by_b(), by_b(kid=None)):
        assert await judged(jwks, good, clock)
    for bad in (by_b(NEW), by_b(kid="a"), token(kid="b"), token(key=RSA, alg="RS256", kid="b")):
        assert await judged(jwks, bad, clock) is None
    assert provider.asked == 1


async def test_it_looks_again_for_an_unknown_key_but_not_too_often(
    provider: Provider, clock: StillClock
) -> None:
    jwks = Jwks(provider.url, clock)
    assert await judged(jwks, by_b(), clock)
    provider.body = document(public(NEW, kid="c"))
    for _ in range(5):
        assert await judged(jwks, by_b(NEW, "c"), clock) is None
    assert provider.asked == 1
    clock.advance(seconds=10)
    assert await judged(jwks, by_b(NEW, "c"), clock)
    assert await judged(jwks, by_b(), clock) is None
    assert provider.asked == 2


async def test_it_fetches_the_keys_anew_now_and_then(provider: Provider, clock: StillClock) -> None:
    jwks = Jwks(provider.url, clock)
    assert await jwks.find("ES256", "b")
    provider.body = document(public(NEW, kid="c"))
    clock.advance(seconds=599)
    assert await jwks.find("ES256", "b")
    clock.advance(seconds=1)
    assert not await jwks.find("ES256", "b")
    assert provider.asked == 2


async def test_it_keeps_the_old_keys_while_the_provider_is_away(
    provider: Provider, clock: StillClock
) -> None:
    jwks = Jwks(provider.url, clock)
    assert await jwks.find("ES256", "b")
    for provider.status, provider.body in [(503, b""), (200, b"<html>"), (200, b'{"keys": []}')]:
        clock.advance(hours=1)
        assert await jwks.find("ES256", "b")
        assert await jwks.find("ES256", "b")
    assert provider.asked == 4


async def test_it_says_that_it_cannot_tell_until_the_keys_are_there(
    provider: Provider, clock: StillClock
) -> None:
    jwks = Jwks(provider.url, clock)
    provider.status = 500
    for _ in range(3):
        with pytest.raises(Unavailable):
            await jwks.find("ES256", "b")
    assert provider.asked == 1
    provider.status = 200
    clock.advance(seconds=10)
    assert await jwks.find("ES256", "b")


async def test_other_keys_are_good_while_the_provider_is_away(provider: Provider, clock: StillClock) -> None:
    provider.status = 500
    known, jwks = Known(secret_key(SECRET), JwtKey(EC)), Jwks(provider.url, clock)
    tokens = Tokens([known, jwks], RULES, clock)
    assert await tokens.caller(token())
    assert await tokens.caller(by_b())
    with pytest.raises(BadToken):
        await tokens.caller(token(key=OctKey.import_key(SECRET[::-1]), kid="x"))
    assert provider.asked == 0
    with pytest.raises(Unavailable):
        await tokens.caller(by_b(NEW))


async def test_a_token_that_names_no_key_is_good_where_there_is_but_one(
    provider: Provider, clock: StillClock
) -> None:
    provider.body = document(public(EC, kid="b"), public(NEW, kid="c"), public(RSA, kid="a"))
    jwks = Jwks(provider.url, clock)
    assert await judged(jwks, by_b(kid=None), clock) is None
    assert await judged(jwks, token(key=RSA, alg="RS256"), clock)


async def test_many_who_wait_cost_one_fetch_and_none_waits_who_has_keys(
    provider: Provider, clock: StillClock
) -> None:
    jwks = Jwks(provider.url, clock)
    async with asyncio.TaskGroup() as group:
        found = [group.create_task(jwks.find("ES256", "b")) for _ in range(20)]
    assert all(task.result() for task in found)
    assert provider.asked == 1
    provider.gate.clear()
    clock.advance(hours=1)
    async with asyncio.TaskGroup() as group:
        slow = group.create_task(jwks.find("ES256", "b"))
        async with asyncio.timeout(5):
            while provider.asked < 2:
                await asyncio.sleep(0.001)
            assert await jwks.find("ES256", "b")
        assert not slow.done()
        provider.gate.set()
    assert slow.result()


async def test_it_follows_no_redirect_and_takes_no_endless_answer(provider: Provider) -> None:
    provider.status, provider.headers = 302, {"Location": "/elsewhere"}
    with pytest.raises(ValueError, match="302"):
        await fetched(provider.url)
    provider.status, provider.headers, provider.body = 200, {}, b" " * (256 << 10)
    assert len(await fetched(provider.url)) == 256 << 10
    provider.body += b" "
    with pytest.raises(ValueError, match="too large"):
        await fetched(provider.url)
    provider.body, provider.headers = gzip.compress(b" " * (64 << 20)), {"Content-Encoding": "gzip"}
    with pytest.raises((ValueError, CallFailed)):
        await fetched(provider.url)


@pytest.mark.parametrize(
    "left_out",
    [
        OctKey.generate_key(256).as_dict() | {"kid": "x"},
        public(EC, kid="x", use="enc"),
        public(EC, kid="x", alg="ES384"),
        public(RSA, kid="x", alg="RS512"),
        public(RSA, kid="x", alg="none"),
        public(ECKey.generate_key("P-384"), kid="x"),
        EC.as_dict(private=True) | {"kid": "x"},
        public(EC, kid=7),
        public(EC, kid="x", x="AAAA"),
        {"kty": "EC", "crv": "P-256", "kid": "x"},
        {"kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "x"},
        {"kty": "RSA", "n": "A" * 100_000, "e": "AQAB", "kid": "x"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "kid": "x"},
        {"kty": ["RSA"]},
        {},
    ],
    ids=itertools.count(),
)
def test_it_leaves_out_keys_that_are_not_for_us(left_out: dict[str, Any]) -> None:
    assert [key.kid for key in keys_of(document(left_out, public(RSA, kid="good")))] == ["good"]
    with pytest.raises(ValueError, match="no key"):
        keys_of(document(left_out))


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"keys": {}}', b'{"keys": [1]}', b"NaN", document(*[{}] * 101), b"\xff"]
)
def test_it_refuses_what_is_no_set_of_keys(body: bytes) -> None:
    with pytest.raises(ValueError, match="the answer"):
        keys_of(body)


async def test_it_says_who_asks_where_the_address_does_and_no_log_line_tells(provider: Provider) -> None:
    await fetched(provider.url)
    assert provider.told is None
    url = provider.url.replace("//", "//me:secret%21@")
    await fetched(url)
    assert provider.told == "Basic bWU6c2VjcmV0IQ=="
    provider.status = 500
    with structlog.testing.capture_logs() as lines, pytest.raises(Unavailable):
        await Jwks(url, StillClock()).find("ES256", "b")
    assert lines
    assert "secret" not in str(lines)
