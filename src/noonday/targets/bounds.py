"""What of a target's answer may be kept: bounded in size, and free of what a database refuses."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from noonday.domain.outcome import Result

KEPT_BYTES = 64 * 1024
ERROR_CHARS = 2_000
STACK_CHARS = 16_000
_DEPTH = 64
_LARGEST_COUNT = 2**31 - 1

# The seeds' words and ours; the first that is present counts.
_COUNTS = {
    "itemsProcessed": "items_processed",
    "items_processed": "items_processed",
    "items_crawled": "items_processed",
    "itemsSucceeded": "items_succeeded",
    "items_succeeded": "items_succeeded",
    "items_indexed": "items_succeeded",
    "itemsFailed": "items_failed",
    "items_failed": "items_failed",
}
# No JSON grows by more when it is written again; 1e15 comes close as 1000000000000000.0
_GROWTH = 8


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


_decoder = json.JSONDecoder(parse_float=_finite, parse_constant=lambda _: None)
_encode = json.JSONEncoder(ensure_ascii=False).encode


def clean_text(text: str) -> str:
    """PostgreSQL refuses NUL and no UTF-8 holds a lone surrogate; both become visible replacements."""
    text = text.replace("\x00", "\N{SYMBOL FOR NULL}")
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def cut_text(text: str, limit: int) -> str:
    text = clean_text(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def cut_stack(text: str) -> str:
    """The end of a stack names the error, so the beginning goes."""
    text = clean_text(text)
    return text if len(text) <= STACK_CHARS else "…" + text[1 - STACK_CHARS :]


class NotJson(ValueError):
    """The value is not JSON."""


def plain_json(value: Any, depth: int = _DEPTH) -> Any:
    """A copy that any JSON column takes; raises NotJson. Tuples become lists, NaN and infinity null."""
    if depth == 0:
        raise NotJson(f"nested deeper than {_DEPTH} levels")
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case str():
            return clean_text(value)
        case list() | tuple():
            return [plain_json(item, depth - 1) for item in value]
        case dict() | Mapping():  # the first is found sooner
            return {_key(key): plain_json(item, depth - 1) for key, item in value.items()}
        case _:
            raise NotJson(f"{type(value).__qualname__} is not JSON")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise NotJson(f"a key of type {type(key).__qualname__} is not JSON")
    return clean_text(key)


def kept_json(value: Any, limit: int = KEPT_BYTES) -> tuple[Any, str | None]:
    """The value as it is kept, or None and the reason why it is not."""
    if value is None:
        return None, None
    try:
        return _if_short(plain_json(value), limit)
    except (NotJson, RecursionError) as exc:
        return None, str(exc)
    except ValueError:  # an integer of thousands of digits has no text
        return None, "a number is too long"


def kept_answer(parsed: Any, read: int, limit: int = KEPT_BYTES) -> tuple[Any, str | None]:
    """Like kept_json, for what parse_json made of so many bytes: it is plain, and has a text."""
    return (parsed, None) if read * _GROWTH <= limit else _if_short(parsed, limit)


def _if_short(plain: Any, limit: int) -> tuple[Any, str | None]:
    size = len(_encode(plain).encode())
    if size > limit:
        return None, f"{size} bytes of JSON, more than the {limit} that are kept"
    return plain, None


def parse_json(data: bytes) -> Any:
    """Raises NotJson for whatever is not strict, shallow JSON."""
    try:
        return _decoded(data.decode()) if _is_harmless(data) else plain_json(json.loads(data))
    except (ValueError, RecursionError) as exc:
        raise NotJson(str(exc)) from exc


def _decoded(text: str) -> Any:
    """As the decoder's own `decode`, which looks for blanks with two regular expressions."""
    text = text.strip(" \t\n\r")
    value, end = _decoder.raw_decode(text)
    if end != len(text):
        raise NotJson(f"there is more after the value, from character {end} on")
    return value


def _is_harmless(data: bytes) -> bool:
    """Is JSON of these bytes plain as it is? It cannot hold NUL or a surrogate, nor nest deeply."""
    if not data.isascii() or b"\\u" in data or b"\x00" in data:
        return False
    return len(data) < 2 * _DEPTH or data.count(b"[") + data.count(b"{") < _DEPTH


def as_count(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _LARGEST_COUNT else None


def counts_in(value: Any) -> dict[str, Any]:
    """The items that plain JSON speaks of, by the names of a Result's fields."""
    found: dict[str, Any] = {}
    if isinstance(value, dict) and not _COUNTS.keys().isdisjoint(value):
        for theirs, ours in _COUNTS.items():
            if theirs in value and ours not in found:
                found[ours] = as_count(value[theirs])
    return found


def with_counts(result: Result, value: Any) -> Result:
    """Adds the items an answer speaks of, where it does."""
    counts = counts_in(value)
    return replace(result, **counts) if counts else result
