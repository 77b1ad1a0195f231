"""Signatures of webhook calls: both forms, with the Standard Webhooks library as oracle, and bad ones."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from noonday.domain.errors import Invalid
from noonday.domain.signatures import BadSignature, Proof, Secret, is_id, proven, secrets_of
from tests.factories import NOON, at

PLAIN = "correct horse battery staple 42".replace(" ", "-")
WHSEC = "whsec_" + base64.b64encode(bytes(range(32))).decode()
BODY = b'{"article": 4711}'
STAMP = str(int(NOON.timestamp()))
Headers = dict[str, str]


def plainly(body: bytes = BODY, stamp: str = STAMP, secret: str = PLAIN) -> Headers:
    mac = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return {"x-webhook-signature": f"sha256={mac}", "x-webhook-timestamp": stamp}


def standardly(
    body: bytes = BODY, moment: datetime = NOON, secret: str = WHSEC, name: str = "msg_1"
) -> Headers:
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(secret).sign(name, moment, body.decode()),
    }


def check(headers: Headers, body: bytes = BODY, secrets: str = f"{PLAIN},{WHSEC}") -> Proof:
    return proven(headers, body, secrets_of(secrets), NOON)


@pytest.mark.parametrize(
    "stamp",
    [
        STAMP,
        STAMP + "000",
        STAMP + "999",
        "2027-01-01T12:00:00Z",
        "2027-01-01T12:00:00.250+00:00",
        "2027-01-01T13:00:00+01:00",
        "2027-01-01 12:00:00",
        "2027-01-01T11:55:00Z",
        "2027-01-01T12:05:00Z",
    ],
)
def test_the_plain_form_takes_seconds_milliseconds_and_iso_times(stamp: str) -> None:
    headers = plainly(stamp=stamp)
    assert check(headers).id is None
    bare = headers["x-webhook-signature"].removeprefix("sha256=")
    for written in (bare, bare.upper(), f" {bare} "):
        assert check(headers | {"x-webhook-signature": written}) == check(headers)


def test_the_standard_form_is_that_of_the_library() -> None:
    assert check(standardly()).id == "msg_1"
    new, old = standardly(secret=WHSEC), standardly(secret="whsec_" + base64.b64encode(b"x" * 24).decode())
    both = f"v1a,ignored {old['webhook-signature']} {new['webhook-signature']}"
    assert check(new | {"webhook-signature": both}).id == "msg_1"


def test_two_secrets_hold_while_one_replaces_the_other() -> None:
    other = "another-secret-of-some-length"
    for secret in (PLAIN, other):
        assert check(plainly(secret=secret), secrets=f"{PLAIN}, {other}")
    with pytest.raises(BadSignature):
        check(plainly(secret=PLAIN), secrets=other)


def test_a_whsec_secret_signs_the_plain_form_as_it_is_written() -> None:
    assert check(plainly(secret=WHSEC), secrets=WHSEC)


def without(name: str) -> Callable[[Headers], Headers]:
    return lambda headers: {key: value for key, value in headers.items() if key != name}


def signed_by(form: Callable[..., Headers], **how: object) -> Callable[[Headers], Headers]:
    return lambda _: form(**how)


def set_to(**changes: str) -> Callable[[Headers], Headers]:
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    return lambda headers: headers | named


MAC = plainly()["x-webhook-signature"].removeprefix("sha256=")
BAD_PLAIN: dict[str, Callable[[Headers], Headers]] = {
    "no headers": lambda _: {},
    "no timestamp": without("x-webhook-timestamp"),
    "no signature": without("x-webhook-signature"),
    "empty signature": set_to(x_webhook_signature=""),
    "only the prefix": set_to(x_webhook_signature="sha256="),
    "another algorithm": set_to(x_webhook_signature=f"sha1={MAC}"),
    "the prefix twice": set_to(x_webhook_signature=f"sha256=sha256={MAC}"),
    "cut": set_to(x_webhook_signature=f"sha256={MAC[:-2]}"),
    "longer": set_to(x_webhook_signature=f"sha256={MAC}00"),
    "one bit off": set_to(x_webhook_signature=f"sha256={int(MAC[0], 16) ^ 1:x}{MAC[1:]}"),
    "base64 instead of hex": set_to(x_webhook_signature=base64.b64encode(bytes.fromhex(MAC)).decode()),
    "letters beyond ASCII": set_to(x_webhook_signature="ü" * 64),
    "digits beyond ASCII": set_to(x_webhook_signature="٣" * 64),
    "two signatures": set_to(x_webhook_signature=f"{MAC},{MAC}"),
    "another secret": signed_by(plainly, secret="not the secret at all"),
    "the empty secret": signed_by(plainly, secret=""),
    "another body": signed_by(plainly, body=b"{}"),
    "the body alone": lambda _: {
        "x-webhook-signature": hmac.new(PLAIN.encode(), BODY, hashlib.sha256).hexdigest(),
        "x-webhook-timestamp": STAMP,
    },
    "another time than was signed": set_to(x_webhook_timestamp=str(int(STAMP) + 1)),
    "an empty time": signed_by(plainly, stamp=""),
    "a time in words": signed_by(plainly, stamp="now"),
    "a negative time": signed_by(plainly, stamp="-1"),
    "a time with a point": signed_by(plainly, stamp=f"{STAMP}.5"),
    "a time in exponents": signed_by(plainly, stamp="1e9"),
    "a time of a thousand digits": signed_by(plainly, stamp="9" * 1000),
    "a time beyond all calendars": signed_by(plainly, stamp="9" * 15),
    "too old": signed_by(plainly, stamp=str(int(STAMP) - 301)),
    "too old in milliseconds": signed_by(plainly, stamp=f"{int(STAMP) - 301}000"),
    "from the future": signed_by(plainly, stamp=str(int(STAMP) + 301)),
    "of the year 1": signed_by(plainly, stamp="0001-01-01T00:00:00+23:59"),
    "of the year 9999": signed_by(plainly, stamp="9999-12-31T23:59:59-23:59"),
}
GOOD = standardly()
BAD_STANDARD: dict[str, Callable[[Headers], Headers]] = {
    "no id": without("webhook-id"),
    "no timestamp": without("webhook-timestamp"),
    "no version": set_to(webhook_signature=GOOD["webhook-signature"].removeprefix("v1,")),
    "another version": set_to(webhook_signature=GOOD["webhook-signature"].replace("v1,", "v2,")),
    "empty": set_to(webhook_signature=""),
    "no base64": set_to(webhook_signature="v1,%%%"),
    "cut": set_to(webhook_signature=GOOD["webhook-signature"][:-4]),
    "another id": set_to(webhook_id="msg_2"),
    "an empty id": signed_by(standardly, name=""),
    "an id with a full stop": signed_by(standardly, name="msg.1"),
    "an id with a space": signed_by(standardly, name="msg 1"),
    "an id without end": signed_by(standardly, name="m" * 201),
    "another body": signed_by(standardly, body=b"{}"),
    "another secret": signed_by(standardly, secret="whsec_" + base64.b64encode(b"x" * 24).decode()),
    "too old": signed_by(standardly, moment=NOON - timedelta(seconds=301)),
    "from the future": signed_by(standardly, moment=NOON + timedelta(seconds=301)),
    "an ISO time": set_to(webhook_timestamp="2027-01-01T12:00:00Z"),
    "another time": set_to(webhook_timestamp=str(int(STAMP) + 1)),
    "good ones beyond the tenth": set_to(webhook_signature="v1,AAAA " * 10 + GOOD["webhook-signature"]),
}


@pytest.mark.parametrize("spoil", BAD_PLAIN.values(), ids=BAD_PLAIN.keys())
def test_a_bad_plain_call_is_refused(spoil: Callable[[Headers], Headers]) -> None:
    with pytest.raises(BadSignature) as refused:
        check(spoil(plainly()))
    assert PLAIN not in str(refused.value)
    assert MAC not in str(refused.value)


@pytest.mark.parametrize("spoil", BAD_STANDARD.values(), ids=BAD_STANDARD.keys())
def test_a_bad_standard_call_is_refused(spoil: Callable[[Headers], Headers]) -> None:
    with pytest.raises(BadSignature):
        check(spoil(standardly()))


def test_a_bad_standard_signature_is_not_saved_by_a_good_plain_one() -> None:
    with pytest.raises(BadSignature):
        check(plainly() | standardly(body=b"{}"))


def test_a_call_of_one_form_cannot_be_read_as_one_of_the_other() -> None:
    """A sender whose ids are times, and somebody who moves the fields: the same bytes would be signed."""
    soon = at("2027-01-01T12:00:30Z")
    signed = standardly(name=str(int(soon.timestamp())))
    mac = base64.b64decode(signed["webhook-signature"].removeprefix("v1,")).hex()
    moved = {"x-webhook-signature": mac, "x-webhook-timestamp": signed["webhook-id"]}
    with pytest.raises(BadSignature):
        check(moved, f"{signed['webhook-timestamp']}.".encode() + BODY, secrets=WHSEC)
    plain = plainly(body=f"{STAMP}.".encode() + BODY)
    standard = base64.b64encode(bytes.fromhex(plain["x-webhook-signature"].removeprefix("sha256="))).decode()
    moved = {"webhook-id": STAMP, "webhook-timestamp": STAMP, "webhook-signature": f"v1,{standard}"}
    with pytest.raises(BadSignature):
        check(moved, secrets=PLAIN)


@given(st.dictionaries(st.sampled_from([*plainly(), *standardly()]), st.text(max_size=100)), st.binary())
def test_no_headers_break_it(headers: Headers, body: bytes) -> None:
    with pytest.raises(BadSignature):
        check(headers, body)


@given(st.binary(max_size=2000), st.text("0123456789abcdef", min_size=16, max_size=64))
def test_whatever_is_signed_is_accepted(body: bytes, secret: str) -> None:
    assert check(plainly(body, secret=secret), body, secret)


@pytest.mark.parametrize(
    "text",
    ["", " , ", "short", "whsec_", "whsec_AAAA", "whsec_%%%" + "A" * 40, f"{PLAIN},{PLAIN}1,{PLAIN}2"],
)
def test_a_bad_secret_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(Invalid, match="SCHEDULER_WEBHOOK_SECRET") as refused:
        secrets_of(text)
    assert not text.strip(" ,") or text not in str(refused.value)


def test_a_secret_is_not_shown() -> None:
    assert PLAIN not in repr(secrets_of(PLAIN))
    assert repr(Secret(b"abc", b"def")) == "Secret()"


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("msg_1", True),
        ("a-b/c:d", True),
        ("~!", True),
        ("a.b", False),
        ("", False),
        ("a b", False),
        ("ü", False),
    ],
)
def test_an_id_is_visible_and_has_no_full_stop(text: str, good: bool) -> None:
    assert is_id(text) is good
