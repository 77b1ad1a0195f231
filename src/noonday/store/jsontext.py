"""JSON as the store keeps it: compact, and free of what PostgreSQL refuses (NUL, lone surrogates, NaN)."""

from __future__ import annotations

import json
import math
from typing import Any

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, default=str).encode
_SUSPECT = ("\\u0000", "\\ud8", "\\ud9", "\\uda", "\\udb", "\\udc", "\\udd", "\\ude", "\\udf")


class Unreadable:
    """A stored value that cannot be read; whoever maps the row decides what becomes of it."""

    __slots__ = ("text",)

    def __init__(self, text: object) -> None:
        self.text = str(text)[:200]

    def __repr__(self) -> str:
        return f"unreadable value {self.text!r}"


def clean_text(text: str) -> str:
    """The text with NUL and lone surrogates replaced; PostgreSQL stores neither."""
    if "\x00" in text:
        text = text.replace("\x00", "\N{REPLACEMENT CHARACTER}")
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode()
    return text


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {clean_text(str(key)): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(item) for item in value]
    return value


_EMPTY: dict[type[Any], str] = {dict: "{}", list: "[]", tuple: "[]"}


def dumps(value: Any) -> str:
    if not value and (empty := _EMPTY.get(type(value))):  # as most of what is kept
        return empty
    try:
        text = _encode(value)
    except (ValueError, TypeError):  # NaN, or keys that JSON does not know
        return _encode(_clean(value))
    # Escapes are rare, so the slow walk is taken only when one of them may be harmful.
    if "\\u" in text and any(mark in text for mark in _SUSPECT):
        return _encode(_clean(value))
    return text


def loads(text: Any) -> Any:
    if not isinstance(text, str | bytes):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return Unreadable(text)
