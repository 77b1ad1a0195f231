"""JSON, files and pairs as people write them into flags."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from cyclopts import Group, Parameter

from noonday.domain.errors import invalid

__all__ = ["HOW", "SOME", "WHAT", "WHEN", "Wire", "headers", "json_or_text", "json_value", "pair"]

Wire = dict[str, Any]
SOME = Parameter(consume_multiple=False)  # a flag that may be repeated
WHAT, WHEN, HOW = (
    Group(title, sort_key=place)
    for place, title in enumerate(["What it runs", "When it runs", "How it is treated"])
)


def pair(flag: str, text: str, sign: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found:
        raise invalid(flag, text, f"must be written as name{sign}value")
    return name.strip(), value.strip() if sign == ":" else value


def headers(given: tuple[str, ...]) -> dict[str, str]:
    return dict(pair("--header", text, ":") for text in given)


def json_value(flag: str, text: str) -> Any:
    try:
        return json.loads(content(flag, text))
    except ValueError as exc:
        raise invalid(flag, text, f"is no JSON: {exc}") from exc


def json_or_text(flag: str, text: str) -> Any:
    given = content(flag, text)
    try:
        return json.loads(given)
    except ValueError:
        return given


def content(flag: str, text: str) -> str:
    """The text itself, or with @ before it the content of that file."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as exc:
        raise invalid(flag, text, f"cannot be read: {exc}") from exc
