"""Proof that a call comes from this scheduler, and that a callback answers one of its calls.

Every call carries two forms of one HMAC-SHA256 over `{id}.{timestamp}.{body}`, the id being the execution's:

- Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,{base64}`; while keys are being
  changed the header holds one signature per key, the new one first.
- `X-Scheduler-Signature: t={timestamp},v1={hex}` for receivers that want one header and no library.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from datetime import datetime

from noonday.domain.execution import ExecutionId


def _digest(secret: bytes, message: bytes) -> bytes:
    return hmac.new(secret, message, hashlib.sha256).digest()


def sign(secrets: Sequence[bytes], message_id: str, at: datetime, body: bytes) -> dict[str, str]:
    timestamp = int(at.timestamp())
    message = f"{message_id}.{timestamp}.".encode() + body
    digests = [_digest(secret, message) for secret in secrets]
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests),
        "X-Scheduler-Signature": ",".join([f"t={timestamp}", *(f"v1={digest.hex()}" for digest in digests)]),
    }


def callback_token(secret: bytes, execution_id: ExecutionId, attempt: int) -> str:
    """What a 202 target shows to report; good for this attempt alone, and only while it runs."""
    digest = _digest(secret, f"callback.{execution_id}.{attempt}".encode())
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def check_callback_token(secret: bytes, execution_id: ExecutionId, attempt: int, token: str) -> bool:
    expected = callback_token(secret, execution_id, attempt)
    return hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace"))
