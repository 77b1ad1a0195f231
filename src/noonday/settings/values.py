"""The kinds of values that settings have, and how each is read from a text."""

from __future__ import annotations

import re
from datetime import timedelta
from functools import partial
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
_LONGEST = timedelta(days=3650)


def parse_duration(value: object) -> timedelta:
    """`30s`, `5m`, `1h`, `1h30m`, `250ms`, or plain seconds."""
    if isinstance(value, timedelta):
        return value
    text = str(value).strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        seconds = float(text)
    else:
        parts = _PART.findall(text)
        if not parts or "".join(n + u for n, u in parts) != text:
            raise ValueError("is not a duration; write seconds (30) or 30s, 5m, 1h, 1h30m")
        seconds = sum(float(n) * _UNITS[u] for n, u in parts)
    if seconds > _LONGEST.total_seconds():
        raise ValueError("is longer than ten years")
    return timedelta(seconds=seconds)


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta():
        raise ValueError("must be longer than zero")
    return value


def _words(value: object) -> object:
    """A comma-separated text as a tuple."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def _roles(value: object) -> object:
    """`api,worker`, or several such texts; each role once."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        return value
    words = (part.strip().lower() for text in texts for part in str(text).split(","))
    return tuple(dict.fromkeys(word for word in words if word))


def _log_level(value: object) -> object:
    word = str(value).strip().lower()
    return {"warn": "warning", "fatal": "critical"}.get(word, word)


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _url(value: str, *, schemes: tuple[str, ...]) -> str:
    if urlsplit(value).scheme.split("+")[0] not in schemes:
        raise ValueError(f"must start with {' or '.join(f'{s}://' for s in schemes)}")
    return value


def _http_base(value: str) -> str:
    if not urlsplit(_url(value, schemes=("http", "https"))).hostname:
        raise ValueError("has no host")
    return value.rstrip("/")


def _origin(value: str) -> str:
    parts = urlsplit(_http_base(value))
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("must be an origin such as https://app.example.com, with nothing after the host")
    netloc = parts.netloc.lower().removesuffix({"http": ":80", "https": ":443"}[parts.scheme])
    return f"{parts.scheme}://{netloc}"  # as browsers write it: without the port that goes without saying


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]
Span = Annotated[timedelta, BeforeValidator(parse_duration), AfterValidator(_positive)]
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
Url = Annotated[str, AfterValidator(_http_base)]
Origins = Annotated[tuple[Annotated[str, AfterValidator(_origin)], ...], BeforeValidator(_words)]
DatabaseUrl = Annotated[str, AfterValidator(partial(_url, schemes=("sqlite", "postgresql", "postgres")))]
RedisUrl = Annotated[str, AfterValidator(partial(_url, schemes=("redis", "rediss", "unix")))]
LogLevel = Annotated[Literal["debug", "info", "warning", "error", "critical"], BeforeValidator(_log_level)]
LogFormat = Annotated[Literal["auto", "json", "console"], BeforeValidator(_lower)]
Roles = Annotated[
    tuple[Literal["api", "scheduler", "worker"], ...], BeforeValidator(_roles), Field(min_length=1)
]
NetworkMode = Annotated[Literal["open", "strict"], BeforeValidator(_lower)]


def is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
