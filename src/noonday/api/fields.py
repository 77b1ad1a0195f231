"""The scalars of the wire, each with its bounds and with words for what is wrong."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import datetime, time
from typing import Annotated, Any
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from noonday.domain.errors import Invalid
from noonday.domain.webhooks import pattern_of

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")  # RFC 9110
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
_FRAMING = {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"}
_CLOCK = re.compile(r"([01]\d|2[0-4]):([0-5]\d)(?::([0-5]\d))?")


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("holds characters that cannot be seen")
    return text


def _name(text: str) -> str:
    text = unicodedata.normalize("NFC", _printable(text))
    if text != text.strip():
        raise ValueError("must not begin or end with a space")
    if "/" in text or "\\" in text or text in (".", ".."):
        raise ValueError("must not hold / or \\, for it is part of the job's address")
    if is_uuid(text):
        raise ValueError("looks like an id; choose a name")
    return text


def is_uuid(text: str) -> bool:
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def http_url(text: str) -> str:
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise ValueError("is not a URL: encode spaces and letters beyond ASCII")
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ValueError(f"is not a URL: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ValueError("must be a URL that begins with http:// or https://")
    if parts.username is not None or parts.password is not None:
        raise ValueError("must not hold a user or password; send them in a header")
    return text


def instant(value: Any) -> datetime:
    """RFC 3339; without an offset it is meant in the job's time zone, which is not known here."""
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a text such as 2027-01-31T02:00:00Z")
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("is not a time; write it as 2027-01-31T02:00:00Z") from None


def weekday(value: Any) -> int:
    """monday, mon, or 1 (Monday) to 7 (Sunday)."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= 7:
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    matches = [n for n, day in enumerate(_WEEKDAYS, 1) if len(word) >= 3 and day.startswith(word)]
    if not matches:
        raise ValueError("is not a day of the week; write monday, mon, or 1 (Monday) to 7 (Sunday)")
    return matches[0]


def weekday_name(number: int) -> str:
    return _WEEKDAYS[number - 1]


def weekdays(value: Any) -> list[int]:
    """A list of days, or a text of days and ranges: `mon-fri, sun`."""
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list) or not items:
        raise ValueError('must be a list of days or a text such as "mon-fri"')
    days: set[int] = set()
    for item in items:
        first, dash, last = item.partition("-") if isinstance(item, str) else (item, "", "")
        start = weekday(first)
        length = (weekday(last) - start) % 7 if dash else 0
        days |= {(start - 1 + step) % 7 + 1 for step in range(length + 1)}
    return sorted(days)


def wall_time(value: Any) -> time:
    """HH:MM or HH:MM:SS; 24:00 is midnight at the end of the day."""
    match = _CLOCK.fullmatch(value) if isinstance(value, str) else None
    if match is None or (match[1] == "24" and (match[2], match[3] or "00") != ("00", "00")):
        raise ValueError("is not a time of day; write 08:00")
    return time(int(match[1]) % 24, int(match[2]), int(match[3] or 0))


def _headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    if len(headers) > 64:
        raise ValueError("has more than 64 headers")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError(f"{name!r} is not a header name")
        if name.lower() in _FRAMING:
            raise ValueError(f"{name!r} is set by the HTTP client and cannot be given")
        if len(value) > 8192 or any(
            (ord(c) < 32 and c != "\t") or ord(c) == 127 or ord(c) > 255 for c in value
        ):
            raise ValueError(f"the value of {name!r} holds line breaks, control characters or too much text")
    return headers


def _service(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", text):
        raise ValueError("is not the name of a service: letters, digits and . _ - only")
    return text


def _country(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,10})?", text):
        raise ValueError("is not a country (DE) or a part of one (DE-BY)")
    return text


def _endpoint(text: str) -> str:
    if not text.startswith("/") or text.startswith("//") or "\\" in text or not text.isascii():
        raise ValueError("must be a path that begins with one /")
    if not text.isprintable() or " " in text or "#" in text:
        raise ValueError("must not hold spaces, # or control characters")
    return text


def _environment(env: Mapping[str, str]) -> Mapping[str, str]:
    for name in env:
        if not name or "=" in name or not name.isprintable():
            raise ValueError(f"{name!r} is not the name of a variable")
    return env


def _pattern(text: str) -> str:
    try:
        return pattern_of(text)
    except Invalid as error:
        raise ValueError(error.problems[0].message.removeprefix(f"{text!r} ")) from None


def _distinct(items: list[str]) -> list[str]:
    return list(dict.fromkeys(items))


def _words(text: str) -> str:
    if not all(c.isprintable() or c in "\n\t" for c in text):
        raise ValueError("holds characters that cannot be seen")
    return text


_TIME_SCHEMA = WithJsonSchema({"type": "string", "format": "date-time"})
_CLOCK_SCHEMA = WithJsonSchema({"type": "string", "examples": ["08:00"]})
_DAYS_SCHEMA = WithJsonSchema({"type": ["array", "string"], "examples": [["mon", "fri"], "mon-fri"]})
_DAY_SCHEMA = WithJsonSchema({"type": ["string", "integer"], "examples": ["monday"]})

Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_name)]
Label = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Tags = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=64), AfterValidator(_printable)]],
    Field(max_length=32),
    AfterValidator(_distinct),
]
JobRefs = Annotated[list[Label], Field(max_length=50), AfterValidator(_distinct)]
Description = Annotated[str, Field(max_length=4000), AfterValidator(_words)]
HttpUrl = Annotated[str, Field(max_length=2048), AfterValidator(http_url)]
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
ServiceName = Annotated[str, Field(max_length=100), AfterValidator(_service)]
Country = Annotated[str, AfterValidator(_country)]
Endpoint = Annotated[str, Field(max_length=2048), AfterValidator(_endpoint)]
Environment = Annotated[dict[str, str], Field(max_length=256), AfterValidator(_environment)]
Pattern = Annotated[str, Field(min_length=1, max_length=512), AfterValidator(_pattern)]
Instant = Annotated[datetime, Field(strict=False), BeforeValidator(instant), _TIME_SCHEMA]
Weekday = Annotated[int, BeforeValidator(weekday), _DAY_SCHEMA]
Weekdays = Annotated[list[int], BeforeValidator(weekdays), _DAYS_SCHEMA]
WallTime = Annotated[time, Field(strict=False), BeforeValidator(wall_time), _CLOCK_SCHEMA]
