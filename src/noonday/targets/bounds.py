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
    "items_processed": ("itemsProcessed", "items_processed", "items_crawled"),
    "items_succeeded": ("itemsSucceeded", "items_succeeded", "items_indexed"),
    "items_failed": ("itemsFailed", "items_failed"),
}


def clean_text(text: str) -> str:
    """PostgreSQL refuses NUL and no UTF-8 holds a lone surrogate; both become visible replacements."""
    return text.replace("\x00", "\N{SYMBOL FOR NULL}").encode("utf-8", "replace").decode("utf-8")


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
        case Mapping():
            return {_key(key): plain_json(item, depth - 1) for key, item in value.items()}
        case _:
            raise NotJson(f"{type(value).__qualname__} is not JSON")


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise NotJson(f"a key of type {type(key).__qualname__} is not JSON")
    return clean_text(key)


def kept_json(value: Any, limit: int = KEPT_BYTES) -> tuple[Any, str | None]:
    """The value as it is kept, or None and the reason why it is not."""
    try:
        plain = plain_json(value)
        size = len(json.dumps(plain, ensure_ascii=False).encode())
    except (NotJson, RecursionError) as exc:
        return None, str(exc)
    except ValueError:  # an integer of thousands of digits has no text
        return None, "a number is too long"
    if size > limit:
        return None, f"{size} bytes of JSON, more than the {limit} that are kept"
    return plain, None


def parse_json(data: bytes) -> Any:
    """Raises NotJson for whatever is not strict, shallow JSON."""
    try:
        return plain_json(json.loads(data))
    except (ValueError, RecursionError) as exc:
        raise NotJson(str(exc)) from exc


def as_count(value: object) -> int | None:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 <= value <= _LARGEST_COUNT else None


def with_counts(result: Result, value: Any) -> Result:
    """Adds the items an answer speaks of, where it does."""
    if not isinstance(value, Mapping):
        return result
    found = {ours: next((value[n] for n in names if n in value), None) for ours, names in _COUNTS.items()}
    return replace(
        result,
        items_processed=as_count(found["items_processed"]),
        items_succeeded=as_count(found["items_succeeded"]),
        items_failed=as_count(found["items_failed"]),
    )
