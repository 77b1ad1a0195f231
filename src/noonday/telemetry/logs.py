"""Structured log lines, JSON or for people, with secrets hidden before anything is written."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

__all__ = ["MASK", "configure", "looks_secret", "redacted", "tell", "what_is_told"]

MASK = "********"

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET_KEY = re.compile(
    r"passw|passphrase|secret|credential|authoriz|cookie|token(?!s(_|$)|iz)"
    r"|(api|access|private|signing|encryption|account)_?key"
    r"|(^|_)(auth|pwd|pass|bearer|jwt|psk)(_|$)"
)
_USERINFO = re.compile(r"(\w+://[^\s/?#@:]*):[^\s/?#@]*@")
_PARAMETER = re.compile(r"([?&]([^=&\s]+)=)[^&#\s]+")
_ASSIGNED = re.compile(
    r"(-{0,2}([A-Za-z][\w.-]*)(?:=|:\s+))\S.*", re.DOTALL
)  # --token=…, TOKEN=…, Authorization: …


@lru_cache(maxsize=1024)
def looks_secret(key: str) -> bool:
    """Does the value under such a key belong to nobody's eyes? `max_tokens` is a number, `token` is not."""
    return bool(_SECRET_KEY.search(re.sub(r"[^a-z0-9]+", "_", _HUMP.sub("_", key).lower())))


def redacted(value: Any, *, secret: bool = False) -> Any:
    """A copy in which each secret leaf is the mask; the shape stays, so that a leaf can be found again."""
    if isinstance(value, str):
        return (MASK if value else value) if secret else _text(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Mapping):
        return {k: redacted(item, secret=secret or looks_secret(str(k))) for k, item in value.items()}
    if isinstance(value, list | tuple):
        announced = [False, *map(_announces, value)]
        return [redacted(item, secret=secret or announced[i]) for i, item in enumerate(value)]
    return MASK if secret else value


def _announces(item: Any) -> bool:
    """`--token` as an argument of its own makes the next one secret."""
    return isinstance(item, str) and item.startswith("-") and "=" not in item and looks_secret(item)


def _text(text: str) -> str:
    if "://" in text:
        text = _USERINFO.sub(rf"\1:{MASK}@", text)
        text = _PARAMETER.sub(lambda m: m[1] + MASK if looks_secret(m[2]) else m[0], text)
    if (match := _ASSIGNED.fullmatch(text)) and looks_secret(match[2]):
        return match[1] + MASK
    return text


def _hide_secrets(_: Any, __: str, event: EventDict) -> EventDict:
    return {key: redacted(value, secret=looks_secret(key)) for key, value in event.items()}


def _one_line(_: Any, __: str, event: EventDict) -> EventDict:
    """A value with line breaks or control characters could pretend to be another log line."""
    plain = (key for key, value in event.items() if isinstance(value, str) and key != "exception")
    return {**event, **{key: _visible(event[key]) for key in plain}}


def _visible(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


_told: ContextVar[Callable[[], Mapping[str, str]]] = ContextVar("noonday_told")


# Every line of this context says it from now on. It is asked for only when there is a line.
tell: Callable[[Callable[[], Mapping[str, str]]], object] = _told.set


def what_is_told(_: Any, __: str, event: EventDict) -> EventDict:
    """The processor of `tell`; a line's own words come first."""
    what = _told.get(None)
    return event if what is None else {**what(), **event}


def configure(
    *, level: str = "info", form: Literal["auto", "json", "console"] = "auto", stream: TextIO | None = None
) -> None:
    """Send every log line of the process, ours and the libraries', through one chain to `stream` (stderr)."""
    out = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        what_is_told,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[*shared, structlog.stdlib.ExtraAdder()],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _hide_secrets,
                *_rendering(form == "console" or (form == "auto" and out.isatty()), colours=out.isatty()),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):  # they bring handlers of their own
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True


def _rendering(for_people: bool, *, colours: bool) -> list[Processor]:
    if for_people:
        return [_one_line, structlog.dev.ConsoleRenderer(colors=colours)]
    return [structlog.processors.JSONRenderer(ensure_ascii=False, default=str)]
