"""Tokens: who holds a good one is known by it, and every bad one is refused with the same words."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from joserfc.jwk import ECKey, OctKey, RSAKey
from structlog.testing import capture_logs

from noonday.api.door.token_texts import header_of
from noonday.api.door.tokens import JwtKey, Known, public_key, secret_key, signed
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.domain.access import Caller, Role
from noonday.domain.claims import BadToken
from noonday.domain.errors import NotAllowed
from noonday.store.database import Database
from tests.api.caller import Api, StillClock
from tests.api.people import RULES, SECONDS, SECRET, bearer, claims, closed, judged, part, token
from tests.factories import NOON

RSA, EC = RSAKey.generate_key(2048), ECKey.generate_key("P-256")
OTHER_RSA, OTHER_EC = RSAKey.generate_key(2048), ECKey.generate_key("P-256")
PEM = RSA.as_pem(private=False)
KNOWN = Known(
    secret_key(SECRET), public_key(PEM.decode()), JwtKey(ECKey.import_key(EC.as_dict(private=False)), "ec-1")
)
NOT_GOOD = "the key or token is not good, or is not good any more"


@pytest.fixture
async def api(sqlite_db: Database, clock: StillClock) -> AsyncIterator[Api]:
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    async with closed(ApiServices(db=sqlite_db, clock=clock, status=lambda: status), KNOWN) as made:
        yield made


@pytest.mark.parametrize(
    ("good", "role"),
    [
        (token(), "operator"),
        (token(claims(role=["guest", "viewer", "admin"])), "admin"),
        (token(claims(aud=["other", "noonday"])), "operator"),
        (token(claims(exp=SECONDS - 29)), "operator"),
        (token(claims(nbf=SECONDS + 29, exp=SECONDS + 60.5)), "operator"),
        (token(kid="whatever"), "operator"),
        (token(typ=None), "operator"),
        (token(typ="at+JWT"), "operator"),
        (token(key=RSA, alg="RS256"), "operator"),
        (token(key=EC, alg="ES256", kid="ec-1"), "operator"),
        (token(key=RSA, alg="RS256", kid="idp-7", x5t="abc"), "operator"),
    ],
)
async def test_it_knows_who_holds_a_good_token(good: str, role: str) -> None:
    assert await judged(KNOWN, good) == Caller(name="ada", role=Role(role))


async def test_it_tells_callers_who_they_are(api: Api) -> None:
    found = await api.get("/api/v2/whoami", headers=bearer(token()))
    rights = ["read", "run", "operate", "edit"]
    assert found == {"name": "ada", "role": "operator", "service": None, "rights": rights, "open": False}
    found = await api.get("/api/v2/whoami", headers=bearer(token(claims(role="service", service="email"))))
    assert (found["service"], found["rights"]) == ("email", ["read", "run", "register"])


def resigned(head: Any, payload: Any = None) -> str:
    """With a header of any shape, and a good signature."""
    made = token(claims() if payload is None else payload)
    return token_with(part(head), made.split(".")[1])


def token_with(head: str, payload: str) -> str:
    signing = f"{head}.{payload}"
    return f"{signing}.{part(hmac.digest(SECRET.encode(), signing.encode(), hashlib.sha256))}"


HEAD, BODY, SIGN = token().split(".")
BAD = {
    "nothing": "",
    "a word": "token",
    "two parts": f"{HEAD}.{BODY}",
    "four parts": f"{HEAD}.{BODY}.{SIGN}.{SIGN}",
    "five parts, as an encrypted one": f"{HEAD}.{BODY}.{BODY}.{BODY}.{SIGN}",
    "alg none": f"{part({'alg': 'none'})}.{BODY}.",
    "alg none with a signature": f"{part({'alg': 'none'})}.{BODY}.{SIGN}",
    "alg None": f"{part({'alg': 'None'})}.{BODY}.",
    "alg NONE": f"{part({'alg': 'NONE'})}.{BODY}.AA",
    "alg nOnE": f"{part({'alg': 'nOnE'})}.{BODY}.AA",
    "no alg": token(alg=None),
    "alg is a list": resigned({"alg": ["HS256"]}),
    "alg is null": resigned({"alg": None}),
    "alg hs256": resigned({"alg": "hs256"}),
    "HS512": token(alg="HS512"),
    "RS512": token(key=RSA, alg="RS512"),
    "PS256": token(key=RSA, alg="PS256"),
    "HS256 by the public key": token(key=OctKey(PEM, PEM), alg="HS256"),
    "HS256 by the public key, stripped": token(key=OctKey(PEM.strip(), PEM.strip()), alg="HS256"),
    "HS256 by the public key, as DER": token(
        key=OctKey(RSA.as_der(private=False), RSA.as_der(private=False)), alg="HS256"
    ),
    "HS256 with no secret": token(key=OctKey(b"\0", b"\0")),
    "another secret": token(key=OctKey.import_key(SECRET[::-1])),
    "another RSA key": token(key=OTHER_RSA, alg="RS256"),
    "another EC key": token(key=OTHER_EC, alg="ES256", kid="ec-1"),
    "an EC key without its kid": token(key=EC, alg="ES256"),
    "an EC key of another kid": token(key=EC, alg="ES256", kid="ec-2"),
    "the secret as RS256": resigned({"alg": "RS256"}),
    "the secret as ES256": resigned({"alg": "ES256", "kid": "ec-1"}),
    "a signature of nothing": f"{HEAD}.{BODY}.",
    "an ES256 of zeros": f"{part({'alg': 'ES256', 'kid': 'ec-1'})}.{BODY}.{part(bytes(64))}",
    "a signature cut short": f"{HEAD}.{BODY}.{SIGN[:-4]}",
    "a signature with more": f"{HEAD}.{BODY}.{SIGN}AAAA",
    "a padded signature": f"{HEAD}.{BODY}.{SIGN}=",
    "other claims under the signature": f"{HEAD}.{part(claims(role='admin'))}.{SIGN}",
    "no exp": token(claims(exp=None)),
    "exp is null": token({**claims(), "exp": None}),
    "exp is a text": token(claims(exp=str(SECONDS + 60))),
    "exp is true": token(claims(exp=True)),
    "exp is a list": token(claims(exp=[SECONDS + 60])),
    "exp is infinite": token(json.dumps(claims()).replace(str(SECONDS + 3600), "Infinity").encode()),
    "exp is 1e999": token(json.dumps(claims()).replace(str(SECONDS + 3600), "1e999").encode()),
    "exp is not a number": token(json.dumps(claims()).replace(str(SECONDS + 3600), "NaN").encode()),
    "expired": token(claims(exp=SECONDS - 30)),
    "expired long ago": token(claims(exp=0)),
    "expires before 1970": token(claims(exp=-1)),
    "not yet": token(claims(nbf=SECONDS + 31)),
    "nbf is a text": token(claims(nbf="0")),
    "nbf is true": token(claims(nbf=True)),
    "nbf is null": token({**claims(), "nbf": None}),
    "issued tomorrow": token(claims(iat=SECONDS + 86_400)),
    "no iss": token(claims(iss=None)),
    "another iss": token(claims(iss="https://idp.example/")),
    "iss is a list": token(claims(iss=[RULES.issuer])),
    "no aud": token(claims(aud=None)),
    "another aud": token(claims(aud="noon")),
    "aud is a part of ours": token(claims(aud="noonday-2")),
    "aud is a list of others": token(claims(aud=["other"])),
    "aud is an object": token(claims(aud={"noonday": True})),
    "no sub": token(claims(sub=None)),
    "a blank sub": token(claims(sub=" ")),
    "sub is a number": token(claims(sub=7)),
    "sub with a line break": token(claims(sub="ada\nroot")),
    "a sub without end": token(claims(sub="a" * 201)),
    "a service without a name": token(claims(role="service")),
    "a service of many": token(claims(role="service", service=["a", "b"])),
    "jku": token(jku="https://evil.example/keys"),
    "x5u": token(x5u="https://evil.example/cert"),
    "jwk": token(key=OTHER_RSA, alg="RS256", jwk=OTHER_RSA.as_dict(private=False)),
    "x5c": token(x5c=["MIIB"]),
    "crit": token(crit=["exp"]),
    "crit is empty": token(crit=[]),
    "b64": token(b64=False, crit=["b64"]),
    "zip": token(zip="DEF"),
    "a token in a token": token(cty="JWT"),
    "another type": token(typ="logout+jwt"),
    "typ is a number": token(typ=1),
    "kid as a path": token(key=OctKey(b"\0" * 32, b"\0" * 32), kid="../../../../dev/null"),
    "kid as SQL": token(key=OctKey.import_key("a" * 32), kid="' UNION SELECT 'aaaaaaaaaaaaaaaaaaaaaaaa' --"),
    "kid as an address": token(key=OTHER_EC, alg="ES256", kid="https://evil.example/key"),
    "kid is a list": token(kid=["ec-1"]),
    "kid is empty": token(kid=""),
    "kid without end": token(kid="a" * 300),
    "a header that is a list": token_with(part([1]), BODY),
    "a header that is a text": token_with(part("alg"), BODY),
    "a header that is a number": token_with(part(5), BODY),
    "a header that is no JSON": token_with(part(b"{alg:HS256}"), BODY),
    "a header that is no base64": token_with("e+/=", BODY),
    "a header without end": token(padding="a" * 1000),
    "a payload that is a list": token(b"[]"),
    "a payload that is no JSON": token(b"ada"),
    "a payload that is no UTF-8": token(b"\xff\xfe"),
    "a payload of many levels": token(b"[" * 4000 + b"]" * 4000),
    "a payload without end": token(claims(more="a" * 10_000)),
    "NUL": token(claims(sub="a\0b")),
    "a key that is none": "nd_aaaaaaaa_" + "a" * 40,
    "a key cut short": "nd_aaaaaaaa_a",
}


def test_the_corpus_is_worth_its_name() -> None:
    assert len(BAD) >= 90
    assert len(set(BAD.values())) == len(BAD)


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD)
async def test_it_does_not_know_who_holds_a_bad_token(bad: str) -> None:
    assert await judged(KNOWN, bad) is None


def test_a_header_has_one_form_alone() -> None:
    head = part({"alg": "HS256"})
    assert header_of(f"{head}.a.b") == ("HS256", None)
    twin = head[:-1] + chr(ord(head[-1]) + 1)  # the bits that stand for nothing are not nought
    with pytest.raises(BadToken, match="base64"):
        header_of(f"{twin}.a.b")


async def test_it_refuses_every_bad_token_in_the_same_words(api: Api) -> None:
    answers = {
        what: await api.call("GET", "/api/v2/whoami", headers=bearer(bad)) for what, bad in BAD.items()
    }
    assert {what: answer.status_code for what, answer in answers.items() if answer.status_code != 401} == {}
    for answer in answers.values():
        assert answer.headers["www-authenticate"] == "Bearer"
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["type"] == "urn:noonday:problem:unidentified"
    assert {answer.json()["detail"] for answer in answers.values()} == {NOT_GOOD}


@pytest.mark.parametrize("role", [None, "root", "Admin", ["guest"], [], 7, {"admin": True}])
async def test_a_token_without_a_role_here_may_nothing(role: Any) -> None:
    with pytest.raises(NotAllowed, match="names no role"):
        await judged(KNOWN, token(claims(role=role, service="email")))


async def test_a_role_that_confines_counts_alone_or_not_at_all(api: Api) -> None:
    found = await api.get(
        "/api/v2/whoami", headers=bearer(token(claims(role=["service", "viewer"], service="email")))
    )
    assert (found["role"], found["service"]) == ("viewer", None)
    answer = await api.call("GET", "/api/v2/whoami", headers=bearer(token(claims(role="guest"))))
    assert answer.status_code == 403


async def test_a_token_does_not_belong_in_an_address(api: Api) -> None:
    for name in ("access_token", "token", "jwt", "api_key", "Authorization"):
        answer = await api.call("GET", f"/api/v2/whoami?{name}={token()}")
        assert answer.status_code == 401
        assert "address" in answer.json()["detail"]
        both = await api.call("GET", f"/api/v2/whoami?{name}={token()}", headers=bearer(token()))
        assert both.status_code == 401


async def test_it_takes_one_proof_in_one_form(api: Api) -> None:
    good = ("Authorization", f"Bearer {token()}")
    for headers in (
        [("Authorization", token())],
        [("Authorization", f"Basic {token()}")],
        [("Authorization", f"Bearer {token()} {token()}")],
        [("Authorization", f"Bearer {token()}, Bearer {token()}")],
        [("Authorization", "Bearer")],
        [("X-API-Key", token())],
        [good, ("Authorization", f"Bearer {token(claims(sub='eve'))}")],
        [good, ("X-API-Key", "nd_aaaaaaaa_" + "a" * 40)],
    ):
        assert (await api.client.get("/api/v2/whoami", headers=headers)).status_code == 401
    assert (await api.client.get("/api/v2/whoami", headers=[good])).status_code == 200


async def test_the_log_says_why_and_never_what(api: Api) -> None:
    with capture_logs() as logs:
        for bad in (BAD["expired"], BAD["another secret"], BAD["jku"], BAD["a key that is none"]):
            await api.call("GET", "/api/v2/whoami", headers=bearer(bad))
            await api.call("GET", "/health/live", headers=bearer(bad))
        await api.call("GET", "/api/v2/whoami")
    told = [line["reason"] for line in logs if line.get("action") == "identify"]
    assert told == [
        "expired",
        "another signature, or by an unknown key",
        "jku in the header",
        "an unknown, revoked or expired key",
    ]
    assert not any(text in str(logs) for text in BAD.values() if text)


async def test_it_asks_for_a_proof_where_there_is_none(api: Api) -> None:
    answer = await api.call("GET", "/api/v2/jobs")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer" in answer.json()["error"]
    assert (await api.call("GET", "/api/v2/nowhere")).status_code == 401


async def test_probes_are_open_and_metrics_are_not(api: Api) -> None:
    for path in ("/health/live", "/health/ready", "/health"):
        assert (await api.call("GET", path)).status_code == 200
        assert (await api.call("GET", path, headers=bearer("old"))).status_code == 200
    assert (await api.call("GET", "/metrics")).status_code == 401
    assert (
        await api.call("GET", "/metrics", headers=bearer(token(claims(role="viewer"))))
    ).status_code == 200


async def test_what_a_caller_did_is_under_its_name(api: Api) -> None:
    body = {"name": "mine", "url": "https://example.com/", "schedule_type": "manual"}
    made = await api.call("POST", "/api/v2/jobs", body, headers=bearer(token()))
    assert made.status_code == 201
    run = await api.call("POST", "/api/v2/jobs/mine/force-run", headers=bearer(token(claims(sub="bob"))))
    path = f"/api/v2/executions/{run.json()['execution_id']}"
    assert (await api.get(path, headers=bearer(token())))["triggered_by_user"] == "bob"


@pytest.mark.parametrize("service", [None, "email-service"])
async def test_a_token_of_its_own_making_is_good(clock: StillClock, service: str | None) -> None:
    caller = Caller(name="ada", role=Role.SERVICE if service else Role.ADMIN, service=service)
    known = Known(secret_key(SECRET))
    text = signed(SECRET, caller, RULES, clock.now(), timedelta(hours=1))
    assert await judged(known, text, clock) == caller
    clock.advance(hours=1, seconds=29)
    assert await judged(known, text, clock) == caller
    clock.advance(seconds=1)
    assert await judged(known, text, clock) is None


@given(st.one_of(st.text(max_size=300), st.binary(max_size=300).map(lambda raw: raw.decode("latin-1"))))
@example("..")
@example("nd_")
async def test_no_text_at_all_is_a_token(text: str) -> None:
    assert await judged(KNOWN, text) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.sampled_from(["iss", "aud", "exp", "nbf", "iat", "sub", "role", "service"]),
    _JSON,
)
async def test_claims_of_any_shape_are_judged_and_never_break_it(name: str, value: Any) -> None:
    made = token({**claims(), name: value})
    try:
        caller = await judged(KNOWN, made)
    except NotAllowed:
        assert name == "role"
        return
    assert caller is None or (caller.role in Role and (caller.name == "ada" or name == "sub"))
