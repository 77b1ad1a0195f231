"""Triggers: what a message on a channel, or a call of a webhook, means for the jobs that wait for it."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from noonday.domain.errors import invalid

MOST_BYTES: Final = 64 * 1024  # of a message; the rest is cut off
_DEEPEST: Final = 50
_LONGEST_CHANNEL: Final = 200


def is_pattern(channel: str) -> bool:
    """Does the name stand for many channels?"""
    return any(mark in channel for mark in "*?[")


def channel_of(text: str, field: str = "channel") -> str:
    """The name of a channel, or a pattern of names; Invalid for what is none."""
    if not text or len(text) > _LONGEST_CHANNEL:
        raise invalid(field, text, f"must have 1 to {_LONGEST_CHANNEL} characters")
    if not text.isprintable():
        raise invalid(field, text, "holds characters that cannot be seen")
    return text


def config_of(own: Mapping[str, Any], message: str, channel: str) -> dict[str, Any]:
    """The job's config for one run: a JSON object overrides it field by field, any other text is added."""
    encoded = message.encode("utf-8", "replace")
    if len(encoded) > MOST_BYTES:
        text = encoded[:MOST_BYTES].decode("utf-8", "ignore")
        return {**own, "message": text, "channel": channel, "message_cut": True}
    fields = _object(message)
    if fields is not None:
        return {**own, **fields}
    return {**own, "message": message, "channel": channel}


def event_of(body: bytes) -> dict[str, Any]:
    """What a call brings to the config of a run: the fields of a JSON object, or the body as `message`.

    Bytes that are no text come as `message_base64`.
    """
    if not body:
        return {}
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\x00"
    if "\x00" in text:
        return {"message_base64": base64.b64encode(body).decode()}
    fields = _object(text)
    return {"message": text} if fields is None else fields


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and _depth_fits(value, _DEEPEST) else None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _depth_fits(value: Any, left: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return left > 0 and all(_depth_fits(item, left - 1) for item in inner)
