"""What people type into fields, as values: words, numbers, JSON, lines, windows, times of day."""

from __future__ import annotations

import json
import re
from datetime import time
from typing import Any, Final

from noonday.domain.errors import Invalid, Problem
from noonday.web.forms import Fields

__all__ = ["json_of", "json_or_text", "lines", "number", "time_of_day", "windows", "words"]

_WINDOW: Final = re.compile(r"(?:(?P<days>\S.*?)\s+)?(?P<start>[\d:]+)\s*[-\N{EN DASH}]\s*(?P<end>[\d:]+)")


def words(text: str) -> list[str]:
    return [word.strip() for word in re.split(r"[,\n]", text) if word.strip()]


def number(text: str) -> Any:
    """What is no number stays text, and is told to be none where numbers are checked."""
    try:
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    except ValueError:
        return text or None


def time_of_day(fields: Fields, name: str) -> time:
    try:
        return time.fromisoformat(fields.text(name))
    except ValueError:
        raise Invalid(Problem(name, "is no time of day; write 08:30")) from None


def json_of(fields: Fields, name: str, otherwise: Any) -> Any:
    text = fields.text(name)
    if not text:
        return otherwise
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(Problem(name, f"is not JSON: {error}")) from None


def json_or_text(text: str) -> Any:
    """As JSON where it is JSON, else as it is written."""
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text


def lines(fields: Fields, name: str, between: str) -> dict[str, str]:
    made: dict[str, str] = {}
    for line in fields.text(name).splitlines():
        key, found, value = line.partition(between)
        if line.strip() and not found:
            raise Invalid(Problem(name, f"{line[:60]!r} has no {between}"))
        if found:
            made[key.strip()] = value.strip()
    return made


def windows(text: str) -> list[dict[str, Any]]:
    made = []
    for line in text.splitlines():
        if not line.strip():
            continue
        match = _WINDOW.fullmatch(line.strip())
        if match is None:
            raise Invalid(Problem("windows", f"{line[:60]!r} is not a window; write mon-fri 08:00-18:00"))
        days = {"days": match["days"]} if match["days"] else {}
        made.append({**days, "start": match["start"], "end": match["end"]})
    return made
