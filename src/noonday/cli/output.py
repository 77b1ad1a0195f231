"""How the CLI speaks: data on stdout, words on stderr; tables for people are in `tables`."""

from __future__ import annotations

import json
import sys
import unicodedata
from datetime import UTC, datetime, timedelta
from typing import Any

__all__ = ["ago", "clean", "compact", "data", "say", "span", "time"]


def say(*lines: str) -> None:
    """Words for a person, on stderr."""
    for line in lines:
        print(clean(line), file=sys.stderr)


def data(value: Any) -> None:
    """The one JSON document of a command, on stdout."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    print(json.dumps(value, indent=2, ensure_ascii=encoding != "utf8", default=str))


def compact(value: Any) -> str:
    """JSON on one line, for a cell of a table."""
    return json.dumps(value, ensure_ascii=False, default=str)


def time(instant: datetime | None, *, utc: bool = False) -> str:
    if instant is None:
        return "-"
    shown = instant.astimezone(UTC) if utc else instant.astimezone()
    return f"{shown:%Y-%m-%d %H:%M:%S} {shown.tzname()}"


def span(length: timedelta | None) -> str:
    """A duration at the precision a person wants: 12 ms, 3.4 s, 5 min 12 s, 2 h 5 min, 3 d 4 h."""
    if length is None:
        return "-"
    secs = abs(length.total_seconds())
    if secs < 1:
        return f"{secs * 1000:.0f} ms"
    if secs < 60:
        return f"{secs:.1f} s"
    if secs < 3600:
        return _two(int(secs), (60, "min"), (1, "s"))
    if secs < 86400:
        return _two(int(secs), (3600, "h"), (60, "min"))
    return _two(int(secs), (86400, "d"), (3600, "h"))


def _two(secs: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    whole, rest = divmod(secs, large[0])
    part = rest // small[0]
    return f"{whole} {large[1]} {part} {small[1]}" if part else f"{whole} {large[1]}"


def ago(instant: datetime, now: datetime) -> str:
    return f"in {span(instant - now)}" if instant > now else f"{span(now - instant)} ago"


def clean(text: str) -> str:
    """Without control characters: what a job printed must not steer the reader's terminal."""
    return "".join(c if c == "\n" or unicodedata.category(c) not in {"Cc", "Cf"} else "�" for c in text)
