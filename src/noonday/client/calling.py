"""One description for two clients: an operation makes a `Call`, its group sends it, at once or awaited."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload
from urllib.parse import quote

__all__ = ["AsyncGroup", "Call", "Group", "address", "operation"]

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[T]):
    """A request that is not yet sent. `answers` says what each status brings; None there: nothing."""

    method: str
    path: str
    answers: Mapping[int, Any]
    query: Mapping[str, Any] = field(default_factory=dict)  # None is left out
    headers: Mapping[str, str | None] = field(default_factory=dict)  # likewise
    body: Any = None
    patience: float = 0  # seconds that the server was asked to wait


class Group:
    """The operations of one tag, sent at once."""

    def __init__(self, send: Callable[[Call[Any]], Any]) -> None:
        self._send = send


class AsyncGroup:
    """The operations of one tag, to be awaited."""

    def __init__(self, send: Callable[[Call[Any]], Coroutine[Any, Any, Any]]) -> None:
        self._send = send


class operation(Generic[P, T]):
    """A method that makes a call; in a `Group` it answers, in an `AsyncGroup` it is awaited."""

    def __init__(self, make: Callable[Concatenate[Any, P], Call[T]]) -> None:
        self.make = make
        self.__doc__ = make.__doc__

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> operation[P, T]: ...
    @overload
    def __get__(self, instance: Group, owner: type[Any]) -> Callable[P, T]: ...
    @overload
    def __get__(self, instance: AsyncGroup, owner: type[Any]) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        if instance is None:
            return self

        make = MethodType(self.make, instance)

        def bound(*args: P.args, **kwargs: P.kwargs) -> Any:
            return instance._send(make(*args, **kwargs))

        return update_wrapper(bound, make)


def address(template: str, /, slashes: str = "", **values: str | int) -> str:
    """A path with its values filled in; `slashes` names the one that may hold some."""

    def filled(match: re.Match[str]) -> str:
        name = match[1]
        text = quote(str(values[name]), safe="/" if name == slashes else "")
        if not text or any(part in (".", "..") for part in text.split("/")):
            raise ValueError(f"{name}: {values[name]!r} cannot be part of an address")
        return text

    return re.sub(r"\{(\w+)\}", filled, template)
