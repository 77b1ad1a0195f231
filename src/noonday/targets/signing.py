"""Proof that a call comes from this scheduler, and that a callback answers one of its calls.

Every call carries two forms of one HMAC-SHA256 over `{id}.{timestamp}.{body}`, the id being the execution's:

- Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,{base64}`; while keys are being
  changed the header holds one signature per key, the new one first.
- `X-Scheduler-Signature: t={timestamp},v1={hex}` for receivers that want one header and no library.
"""

from __future__ import annotations

import hmac
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256

from noonday.domain.execution import ExecutionId


def _digest(secret: bytes, message: bytes) -> bytes:
    made = _keyed(secret).copy()
    made.update(message)
    return made.digest()


@lru_cache(maxsize=8)
def _keyed(secret: bytes) -> hmac.HMAC:
    """It has seen the key: half of the work, the same for every message."""
    return hmac.new(secret, digestmod=sha256)


def sign(secrets: Sequence[bytes], message_id: str, at: datetime, body: bytes) -> str:
    """The headers, in lines."""
    timestamp = int(at.timestamp())
    message = f"{message_id}.{timestamp}.".encode() + body
    standard, single = "", f"t={timestamp}"
    for secret in secrets:
        digest = _digest(secret, message)
        standard += f"{' ' if standard else ''}v1,{b64encode(digest).decode()}"
        single += f",v1={digest.hex()}"
    return (
        f"webhook-id: {message_id}\r\n"
        f"webhook-timestamp: {timestamp}\r\n"
        f"webhook-signature: {standard}\r\n"
        f"X-Scheduler-Signature: {single}\r\n"
    )


def callback_token(secret: bytes, execution_id: ExecutionId, attempt: int) -> str:
    """What a 202 target shows to report; good for this attempt alone, and only while it runs."""
    digest = _digest(secret, f"callback.{execution_id}.{attempt}".encode())
    return urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_callback_token(secret: bytes, execution_id: ExecutionId, attempt: int, token: str) -> bool:
    expected = callback_token(secret, execution_id, attempt)
    return hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace"))
