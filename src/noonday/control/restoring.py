"""From the plain JSON of a snapshot back to values of the domain, led by their types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

__all__ = ["built"]


def built(kind: Any, value: Any) -> Any:
    """The value of this type that `plain` would make `value` of."""
    if isinstance(kind, NewType):
        return built(kind.__supertype__, value)
    if get_origin(kind) in (Union, UnionType):
        return built(_chosen(get_args(kind), value), value)
    if is_dataclass(kind):
        return _made(kind, value)
    return _several(kind, value) if get_origin(kind) else _single(kind, value)


def _made(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = get_type_hints(kind)
    return kind(**{name: built(hints[name], item) for name, item in value.items() if name in hints})


def _chosen(kinds: tuple[Any, ...], value: Any) -> Any:
    """Of optional values the type that is there, of several kinds the one that `type` names."""
    if value is None:
        return NoneType
    there = [kind for kind in kinds if kind is not NoneType]
    if len(there) == 1:
        return there[0]
    return next(kind for kind in there if _tag(kind) == value["type"])


def _tag(kind: Any) -> Any:
    return next((field.default for field in fields(kind) if field.name == "type"), MISSING)


def _several(kind: Any, value: Any) -> Any:
    origin, args = get_origin(kind), get_args(kind)
    if origin in (tuple, frozenset):
        return origin(built(args[0], item) for item in value)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {key: built(args[1], item) for key, item in value.items()}
    return value  # a Literal


def _single(kind: Any, value: Any) -> Any:
    if not isinstance(kind, type):
        return value
    if issubclass(kind, timedelta):
        return timedelta(seconds=value)
    if issubclass(kind, datetime | date | time):
        return kind.fromisoformat(value)
    return kind(value) if issubclass(kind, Enum) else value
