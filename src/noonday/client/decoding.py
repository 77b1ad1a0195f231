"""JSON into the client's frozen dataclasses: fields it does not know are left out, times become datetimes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from noonday.client.errors import UnexpectedAnswer

__all__ = ["decode"]


def decode(value: Any, form: Any) -> Any:
    """`form` is a type as it stands in an annotation: `Job`, `list[Job]`, `datetime | None`, `Any`."""
    origin = get_origin(form)
    if form is Any or origin is Literal:
        return value
    if origin in (Union, UnionType):
        return _one_of(value, get_args(form))
    if origin is list:
        (item,) = get_args(form)
        return [decode(one, item) for one in _expect(value, list)]
    if origin is dict:
        _, item = get_args(form)
        return {key: decode(one, item) for key, one in _expect(value, dict).items()}
    if is_dataclass(form):
        return _object(_expect(value, dict), form)
    return _scalar(value, form)


def _scalar(value: Any, form: Any) -> Any:
    if form in (datetime, date):
        try:
            return form.fromisoformat(_expect(value, str))
        except ValueError as error:
            raise UnexpectedAnswer(f"{value!r} is not a time") from error
    if form is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _expect(value, NoneType if form is None else form)


def _expect(value: Any, kind: type[Any]) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind in (int, float)):
        raise UnexpectedAnswer(f"{str(value)[:100]!r} should be of the type {kind.__name__}")
    return value


def _object(value: Mapping[str, Any], form: Any) -> Any:
    made: dict[str, Any] = {}
    for name, wire, hint, read in _fields(form):
        if wire in value:
            made[name] = read(value[wire])
        elif NoneType in get_args(hint):  # a server older than this client
            made[name] = None
        else:
            raise UnexpectedAnswer(f"{form.__name__} has no field {wire!r} here")
    return form(**made)


@cache
def _fields(form: Any) -> tuple[tuple[str, str, Any, Callable[[Any], Any]], ...]:
    """Name here, name on the wire, type, reader."""
    hints = get_type_hints(form)
    return tuple(
        (field.name, field.metadata.get("wire", field.name), hints[field.name], _reader(hints[field.name]))
        for field in fields(form)
    )


def _reader(hint: Any) -> Callable[[Any], Any]:
    return lambda value: decode(value, hint)


def _one_of(value: Any, forms: tuple[Any, ...]) -> Any:
    """The first that fits; among objects the one that knows most of the fields."""
    if value is None and NoneType in forms:
        return None
    shapes = [form for form in forms if is_dataclass(form)]
    if isinstance(value, dict) and len(shapes) > 1:
        return decode(value, max(shapes, key=lambda form: _likeness(value, form)))
    for form in forms:
        try:
            return decode(value, form)
        except UnexpectedAnswer:
            continue
    raise UnexpectedAnswer(f"{str(value)[:100]!r} is none of {forms}")


def _likeness(value: Mapping[str, Any], form: Any) -> tuple[bool, int]:
    """Objects that have a `type` are told apart by it, others by their fields."""
    known = {wire: hint for _, wire, hint, _ in _fields(form)}
    kind = get_args(known.get("type"))
    named = get_origin(known.get("type")) is Literal and value.get("type") in kind
    return named, len(known.keys() & value.keys()) - len(known.keys() - value.keys())
