"""Proof that a webhook call comes from somebody who knows the secret, and is not an old one sent again.

- `X-Webhook-Signature: sha256={hex}`, or the hex alone: HMAC-SHA256 over `{timestamp}.{body}`, with
  `X-Webhook-Timestamp` in seconds, milliseconds or ISO 8601; the key is the secret as it is written.
- Standard Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature: v1,{base64}` over
  `{id}.{timestamp}.{body}`; the key is what stands in base64 behind `whsec_`, and only such a secret will do.

No key serves both forms, so that a call of one can never be read as a call of the other.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from noonday.domain.errors import Invalid, Problem, Unidentified

TOLERANCE: Final = timedelta(minutes=5)
_MOST_SECRETS: Final = 2  # the old one and the new one
_SHORTEST: Final = 16  # bytes
_MOST_SIGNATURES: Final = 10  # of one call; senders that change their key send two
_PREFIX: Final = "whsec_"
_NAME: Final = "SCHEDULER_WEBHOOK_SECRET"
_NUMBER: Final = re.compile(r"[0-9]{1,15}")
_MILLIS_FROM: Final = 10**11  # as seconds that is the year 5138, as milliseconds 1973
_ID: Final = re.compile(r"[!-\-/-~]{1,200}")  # visible ASCII but the full stop, which parts the fields
_HEX: Final = re.compile(r"(?:sha256=)?([0-9a-fA-F]{64})")


class BadSignature(Unidentified):
    """The call is not signed as it must be."""


@dataclass(frozen=True, slots=True)
class Secret:
    text: bytes = field(repr=False)  # as it is written
    standard: bytes | None = field(default=None, repr=False)  # the key behind whsec_


@dataclass(frozen=True, slots=True)
class Proof:
    """That a call is genuine. `id` was signed with it; without one, the call is known by its `mac`."""

    mac: bytes
    id: str | None = None


def secrets_of(text: str) -> tuple[Secret, ...]:
    """One secret, or two with a comma between while one replaces the other; Invalid never shows them."""
    words = [word for word in re.split(r"[\s,]+", text) if word]
    if not 1 <= len(words) <= _MOST_SECRETS:
        raise Invalid(Problem(_NAME, "must hold one secret, or two with a comma between"))
    return tuple(_secret(word) for word in words)


def _secret(word: str) -> Secret:
    key: bytes | None = None
    if word.startswith(_PREFIX):
        try:
            key = base64.b64decode(word.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise Invalid(Problem(_NAME, f"is not base64 behind {_PREFIX}")) from None
    text = word.encode()
    if len(text if key is None else key) < _SHORTEST:
        raise Invalid(Problem(_NAME, f"is too easy to guess: it needs {_SHORTEST} bytes or more"))
    return Secret(text, key)


def is_id(text: str) -> bool:
    """May a sender name a delivery so?"""
    return _ID.fullmatch(text) is not None


def proven(headers: Mapping[str, str], body: bytes, secrets: Sequence[Secret], now: datetime) -> Proof:
    """Raises BadSignature unless one of the secrets signed this body within the tolerance.

    `headers` are asked by names in small letters.
    """
    if "webhook-signature" in headers:
        return _standard(headers, body, secrets, now)
    if "x-webhook-signature" in headers:
        return _plain(headers, body, secrets, now)
    raise BadSignature("the call must be signed: X-Webhook-Signature with X-Webhook-Timestamp is missing")


def _plain(headers: Mapping[str, str], body: bytes, secrets: Sequence[Secret], now: datetime) -> Proof:
    timestamp = _timely(headers, "x-webhook-timestamp", now)
    message = f"{timestamp}.".encode("utf-8", "replace") + body
    match = _HEX.fullmatch(headers["x-webhook-signature"].strip())
    given = bytes.fromhex(match[1]) if match else b""
    return Proof(_signed_by([secret.text for secret in secrets], message, [given]))


def _standard(headers: Mapping[str, str], body: bytes, secrets: Sequence[Secret], now: datetime) -> Proof:
    timestamp = _timely(headers, "webhook-timestamp", now)
    message_id = headers.get("webhook-id", "")
    if not is_id(message_id) or not _NUMBER.fullmatch(timestamp):
        raise BadSignature("webhook-id or webhook-timestamp is missing or odd")
    message = f"{message_id}.{timestamp}.".encode() + body
    words = headers["webhook-signature"].split()[:_MOST_SIGNATURES]
    given = [_decoded(word.removeprefix("v1,")) for word in words if word.startswith("v1,")]
    keys = [secret.standard for secret in secrets if secret.standard is not None]
    return Proof(_signed_by(keys, message, given), message_id)


def _timely(headers: Mapping[str, str], name: str, now: datetime) -> str:
    text = headers.get(name, "").strip()
    moment = _moment(text)
    if moment is None:
        raise BadSignature(f"{name} is missing or no time")
    if abs(now - moment) > TOLERANCE:
        minutes = TOLERANCE // timedelta(minutes=1)
        raise BadSignature(f"{name} lies more than {minutes} minutes before or after this scheduler's time")
    return text


def _moment(text: str) -> datetime | None:
    try:
        if _NUMBER.fullmatch(text):
            number = int(text)
            return datetime.fromtimestamp(number / 1000 if number >= _MILLIS_FROM else number, UTC)
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""


def _signed_by(keys: Sequence[bytes], message: bytes, given: Sequence[bytes]) -> bytes:
    """The MAC that was given; the comparison takes the same time wherever it fails."""
    macs = [hmac.new(key, message, hashlib.sha256).digest() for key in keys]
    good = [mac for mac in macs for one in given if hmac.compare_digest(mac, one)]
    if not good:
        raise BadSignature("the signature does not fit the body, the timestamp and the secret")
    return good[0]
