"""What must not be shown is shown as a mask, and a mask that comes back means: keep what is stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from noonday.domain.errors import Invalid, Problem
from noonday.telemetry.logs import MASK, looks_secret, redacted

__all__ = ["MASK", "looks_secret", "redacted", "restored"]


def restored(given: Any, stored: Any, field: str) -> Any:
    """`given` with each masked leaf replaced by the stored one at the same place.

    A mask with nothing behind it is refused: kept as a value it would break the job silently.
    """
    return _restored(given, stored, redacted(stored), field) if _masked(given) else given


def _masked(given: Any) -> bool:
    match given:
        case str():
            return MASK in given
        case Mapping():
            return any(map(_masked, given.values()))
        case list() | tuple():
            return any(map(_masked, given))
        case _:
            return False


def _restored(given: Any, stored: Any, shown: Any, field: str) -> Any:
    match given:
        case Mapping():
            old, seen = _mapping(stored), _mapping(shown)
            return {
                key: _restored(item, old.get(key), seen.get(key), f"{field}.{key}")
                for key, item in given.items()
            }
        case list() | tuple():
            old_list, seen_list = _sequence(stored), _sequence(shown)
            return [
                _restored(item, _at(old_list, n), _at(seen_list, n), f"{field}[{n}]")
                for n, item in enumerate(given)
            ]
        case str() if MASK in given:
            if given == shown and given != stored:
                return stored
            raise Invalid(Problem(field, f"holds the mask {MASK}, but no such secret is stored here"))
        case _:
            return given


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else []


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else None
