"""Signatures and callback tokens, with the Standard Webhooks library as the oracle."""

from __future__ import annotations

import base64
import hashlib
import hmac
from datetime import UTC, datetime

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from noonday.domain.execution import ExecutionId
from noonday.targets.signing import callback_token, check_callback_token
from tests.targets.hands import SECRET, signed, whsec

ID = "01890000-0000-7000-8000-000000000001"
OTHER = b"another secret of some thirty-two"


def now() -> datetime:
    return datetime.now(UTC)


@pytest.mark.parametrize("body", [b"{}", '{"name": "Zoë"}'.encode()])
def test_the_standard_webhooks_library_accepts_the_signature(body: bytes) -> None:
    Webhook(whsec(SECRET)).verify(body.decode(), signed([SECRET], ID, now(), body))


@pytest.mark.parametrize("body", ["", "plain text", "{}"])
def test_it_signs_as_the_standard_webhooks_library_does(body: str) -> None:
    at = now()
    theirs = Webhook(whsec(SECRET)).sign(ID, at, body)
    assert signed([SECRET], ID, at, body.encode())["webhook-signature"] == theirs


def test_it_refuses_another_body_id_or_secret() -> None:
    headers = signed([SECRET], ID, now(), b"{}")
    for secret, body, changes in (
        (OTHER, "{}", {}),
        (SECRET, "[]", {}),
        (SECRET, "{}", {"webhook-id": "other"}),
        (SECRET, "{}", {"webhook-timestamp": str(int(now().timestamp()) - 9)}),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(whsec(secret)).verify(body, headers | changes)


def test_while_keys_change_receivers_with_either_key_accept_it() -> None:
    headers = signed([SECRET, OTHER], ID, now(), b"{}")
    Webhook(whsec(SECRET)).verify("{}", headers)
    Webhook(whsec(OTHER)).verify("{}", headers)


def test_the_single_header_carries_time_and_hex() -> None:
    at = datetime(2027, 1, 1, tzinfo=UTC)
    headers = signed([SECRET], ID, at, b"body")
    digest = hmac.new(SECRET, f"{ID}.{int(at.timestamp())}.body".encode(), hashlib.sha256).hexdigest()
    assert headers["X-Scheduler-Signature"] == f"t={int(at.timestamp())},v1={digest}"


def test_a_callback_token_is_good_for_its_own_attempt_alone() -> None:
    token = callback_token(SECRET, ExecutionId(ID), 2)
    expected = hmac.new(SECRET, f"callback.{ID}.2".encode(), hashlib.sha256).digest()
    assert base64.urlsafe_b64decode(token + "=") == expected
    assert check_callback_token(SECRET, ExecutionId(ID), 2, token)
    assert not check_callback_token(SECRET, ExecutionId(ID), 3, token)
    assert not check_callback_token(SECRET, ExecutionId(ID[:-1] + "2"), 2, token)
    assert not check_callback_token(OTHER, ExecutionId(ID), 2, token)
    for wrong in ("", token[:-1], token + "=", "ümläut\udc80"):
        assert not check_callback_token(SECRET, ExecutionId(ID), 2, wrong)
