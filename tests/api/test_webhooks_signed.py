"""Webhook calls where a secret is set: signed ones start jobs, once; nothing else does, whoever asks."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from httpx2 import Response
from standardwebhooks import Webhook
from starlette.datastructures import Headers

from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.domain.access import ANYBODY, Caller
from noonday.domain.signatures import secrets_of
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, client_of
from tests.factories import NOON

HOOK = "/api/v2/triggers/webhook"
PLAIN = "a-secret-of-some-length"
WHSEC = "whsec_" + base64.b64encode(b"another secret of some length").decode()
BODY = b'{"n": 1}'


async def nobody(headers: Headers) -> Caller | None:
    return ANYBODY if "x-admin" in headers else None


@pytest.fixture
async def signed(sqlite_db: Database, clock: StillClock) -> AsyncIterator[Api]:
    """Everybody must say who they are, and webhooks must be signed; a job waits for /a and one for /b."""
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    services = ApiServices(
        db=sqlite_db,
        clock=clock,
        status=lambda: status,
        identify=nobody,
        webhook_secrets=secrets_of(f"{PLAIN},{WHSEC}"),
    )
    async with client_of(services) as client:
        api = Api(client, sqlite_db, clock)
        for name in ("a", "b"):
            body = {"name": name, "url": "https://example.com/", "trigger_webhook": f"/{name}"}
            made = await api.call("POST", "/api/v2/jobs", body, headers={"x-admin": "yes"})
            assert made.status_code == 201, made.text
        yield api


def plainly(moment: datetime = NOON, body: bytes = BODY, secret: str = PLAIN) -> dict[str, str]:
    stamp = str(int(moment.timestamp()))
    mac = hmac.new(secret.encode(), f"{stamp}.".encode() + body, hashlib.sha256).hexdigest()
    return {"X-Webhook-Signature": f"sha256={mac}", "X-Webhook-Timestamp": stamp}


def standardly(name: str, moment: datetime = NOON, body: bytes = BODY) -> dict[str, str]:
    return {
        "webhook-id": name,
        "webhook-timestamp": str(int(moment.timestamp())),
        "webhook-signature": Webhook(WHSEC).sign(name, moment, body.decode()),
    }


async def send(api: Api, path: str, headers: dict[str, str], body: bytes = BODY) -> Response:
    return await api.client.post(f"{HOOK}{path}", content=body, headers=headers)


async def count(api: Api, job: str = "a") -> int:
    page: dict[str, Any] = await api.get(f"/api/v2/jobs/{job}/executions", headers={"x-admin": "yes"})
    return int(page["total"])


async def test_a_good_signature_is_enough(signed: Api) -> None:
    for headers in (plainly(), standardly("msg_1")):
        answer = await send(signed, "/a", headers)
        assert answer.status_code == 202, answer.text
        assert answer.json()["matched"] == 1
    assert await count(signed) == 2


async def test_without_one_nobody_starts_anything(signed: Api) -> None:
    """Not even somebody who may run jobs: the secret was set so that calls are signed."""
    bad: list[dict[str, str]] = [
        {},
        {"x-admin": "yes"},
        plainly(secret="not the secret"),
        plainly(body=b"{}"),
        plainly(NOON - timedelta(seconds=301)),
        plainly(NOON + timedelta(seconds=301)),
        {"X-Webhook-Signature": plainly()["X-Webhook-Signature"]},
        standardly("msg_1") | {"webhook-id": "msg_2"},
        standardly("msg_1", NOON - timedelta(minutes=6)),
        plainly() | {"webhook-signature": "v1,AAAA"},
    ]
    for headers in bad:
        answer = await send(signed, "/a", headers)
        assert answer.status_code == 401, headers
        assert answer.json()["type"] == "urn:noonday:problem:bad-signature"
        assert PLAIN not in answer.text
    assert await count(signed) == 0
    shown = await signed.get("/api/v2/triggers/deliveries", headers={"x-admin": "yes"})
    assert shown["total"] == 0


async def test_the_body_counts_byte_for_byte(signed: Api) -> None:
    assert (await send(signed, "/a", plainly(), b'{"n":1}')).status_code == 401
    odd = b'\xef\xbb\xbf {"n":\t1}\r\n\xff'
    assert (await send(signed, "/a", plainly(body=odd), odd)).status_code == 202


async def test_a_call_that_is_sent_again_starts_nothing(signed: Api) -> None:
    first = await send(signed, "/a", plainly())
    signed.clock.advance(minutes=4)
    mac = plainly()["X-Webhook-Signature"].removeprefix("sha256=")
    again: list[tuple[str, dict[str, str]]] = [
        ("/a", plainly()),
        ("//a/", plainly()),
        ("/a", plainly() | {"X-Webhook-Signature": mac.upper()}),
        ("/a", plainly() | {"X-Webhook-Id": "another-one"}),  # not signed, so it means nothing
        ("/a", plainly() | {"webhook-id": "another-one"}),
    ]
    for path, headers in again:
        answer = await send(signed, path, headers)
        assert answer.status_code == 202
        assert answer.json() == first.json() | {"replayed": True}
    assert await count(signed) == 1
    signed.clock.advance(minutes=2)
    assert (await send(signed, "/a", plainly())).status_code == 401
    assert (await send(signed, "/a", plainly(signed.clock.now()))).json()["replayed"] is False
    assert await count(signed) == 2


async def test_the_senders_id_is_remembered_for_retries_signed_anew(signed: Api) -> None:
    first = await send(signed, "/a", standardly("msg_1"))
    assert first.json()["delivery_id"] == "msg_1"
    later = signed.clock.advance(hours=12)
    again = await send(signed, "/a", standardly("msg_1", later, b'{"n": 2}'), b'{"n": 2}')
    assert again.json() == first.json() | {"replayed": True}
    assert await count(signed) == 1


async def test_a_signed_id_cannot_be_led_to_another_path(signed: Api) -> None:
    await send(signed, "/a", standardly("msg_1"))
    answer = await send(signed, "/b", standardly("msg_1"))
    assert answer.status_code == 409
    assert await count(signed, "b") == 0


async def test_a_path_in_the_signed_body_cannot_be_led_away_by_a_header(signed: Api) -> None:
    body = b'{"path": "/a", "data": {"n": 1}}'
    answer = await send(signed, "", plainly(body=body) | {"X-Webhook-Path": "/b"}, body)
    assert answer.status_code == 422
    assert (await send(signed, "", plainly(body=body), body)).json()["matched"] == 1
    assert (await count(signed, "a"), await count(signed, "b")) == (1, 0)


async def test_a_wrong_call_does_not_use_up_its_id(signed: Api) -> None:
    spoiled = standardly("msg_1") | {"webhook-signature": "v1,AAAA"}
    assert (await send(signed, "/a", spoiled)).status_code == 401
    assert (await send(signed, "/a", standardly("msg_1"))).json()["replayed"] is False


async def test_a_bad_signature_is_told_before_anything_else(signed: Api) -> None:
    """Whoever has no secret does not learn what would be wrong with the call."""
    for path, body in (("", b"{}"), ("/../x", b""), ("", b'{"path": 7}')):
        assert (await send(signed, path, {}, body)).status_code in (401, 404)


async def test_too_much_is_refused_before_it_is_checked(signed: Api) -> None:
    body = b"x" * ((1 << 20) + 1)
    assert (await send(signed, "/a", plainly(body=body), body)).status_code == 413


async def test_the_status_says_that_calls_are_signed(signed: Api) -> None:
    shown = await signed.get("/api/v2/triggers/status", headers={"x-admin": "yes"})
    assert shown["webhook_signed"] is True
