"""JSON as this API takes it: objects within bounds, and nothing that a database or another reader refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

from noonday.domain.errors import Invalid, Problem

__all__ = ["MAX_DEPTH", "NotJson", "parse"]

MAX_DEPTH = 64
_MOST_NODES = 100_000


class NotJson(Exception):
    """The body is not JSON at all."""


def parse(body: bytes) -> Any:
    """Raises NotJson for a wrong syntax, Invalid for what JSON allows and we do not."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotJson(f"the body is not UTF-8: {error.reason} at byte {error.start}") from None
    try:
        value = json.loads(text, parse_constant=_constant, parse_float=_float)
    except json.JSONDecodeError as error:
        raise NotJson(
            f"the body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})"
        ) from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError:  # a number of thousands of digits
        raise Invalid(Problem("", "holds a number with too many digits")) from None
    _walk(value)
    return value


def _constant(name: str) -> float:
    raise Invalid(Problem("", f"{name} is not a number of JSON"))


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise Invalid(Problem("", f"{text[:40]} is too large a number"))
    return number


def _too_deep() -> Invalid:
    return Invalid(Problem("", f"is nested more than {MAX_DEPTH} levels deep"))


def _walk(value: Any) -> None:
    """Look at every key and value, without recursion."""
    ahead: list[tuple[Any, str, int]] = [(value, "", 0)]
    seen = 0
    while ahead:
        item, field, depth = ahead.pop()
        seen += 1
        if depth > MAX_DEPTH:
            raise _too_deep()
        if seen > _MOST_NODES:
            raise Invalid(Problem("", f"holds more than {_MOST_NODES} values"))
        ahead += [(inner, name, depth + 1) for name, inner in _inside(item, field)]


def _inside(item: Any, field: str) -> Iterator[tuple[str, Any]]:
    """Check one value, and yield what it holds."""
    match item:
        case str():
            _check_text(item, field)
        case dict():
            for key, inner in item.items():
                name = f"{field}.{key}" if field else key
                _check_text(key, name)
                yield name, inner
        case list():
            yield from ((f"{field}[{n}]", inner) for n, inner in enumerate(item))
        case int() if abs(item) >= 1 << 256:
            raise Invalid(Problem(field, "is too large a number"))


def _check_text(text: str, field: str) -> None:
    if "\x00" in text:
        raise Invalid(Problem(_seen(field), "holds a NUL character"))
    if not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text):
        raise Invalid(Problem(_seen(field), "holds half of a surrogate pair, which is not text"))


def _seen(field: str) -> str:
    return "".join(c if c.isprintable() else "�" for c in field)[:200]
