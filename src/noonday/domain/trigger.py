"""Triggers: what a message on a channel means for the jobs that listen there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

MOST_BYTES: Final = 64 * 1024  # of a message; the rest is cut off
_DEEPEST: Final = 50


def is_pattern(channel: str) -> bool:
    """Does the name stand for many channels?"""
    return any(mark in channel for mark in "*?[")


def config_of(own: Mapping[str, Any], message: str, channel: str) -> dict[str, Any]:
    """The job's config for one run: a JSON object overrides it field by field, any other text is added."""
    encoded = message.encode("utf-8", "replace")
    if len(encoded) > MOST_BYTES:
        text = encoded[:MOST_BYTES].decode("utf-8", "ignore")
        return {**own, "message": text, "channel": channel, "message_cut": True}
    try:
        value = json.loads(message, parse_constant=_refuse)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, dict) and _depth_fits(value, _DEEPEST):
        return {**own, **value}
    return {**own, "message": message, "channel": channel}


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _depth_fits(value: Any, left: int) -> bool:
    if not isinstance(value, dict | list):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return left > 0 and all(_depth_fits(item, left - 1) for item in inner)
