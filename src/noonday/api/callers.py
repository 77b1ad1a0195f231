"""Who asks, for routes: each needs one right, and a route that names none does not start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from noonday.domain.access import Caller, Right
from noonday.domain.errors import NotAllowed

__all__ = ["CALLER", "Who", "checked", "needs", "open_to_all", "right_of"]

CALLER: Final = "noonday.caller"  # in the scope of a request: set by the door


class _Needs:
    def __init__(self, right: Right | None) -> None:
        self.right = right

    def __call__(self, request: Request) -> None:
        caller = _who(request)
        if self.right is not None and not caller.may(self.right):
            raise NotAllowed(f"{caller.name} has the role {caller.role}, which may not {self.right} here")


def _who(request: Request) -> Caller:
    found: Caller = request.scope[CALLER]
    return found


Who = Annotated[Caller, Depends(_who)]


def needs(right: Right) -> Any:
    """For `dependencies=[…]` of a router or a route; the innermost one counts as well as the outer ones."""
    return Depends(_Needs(right))


open_to_all: Final[Any] = Depends(_Needs(None))  # probes, and what brings its own proof


def right_of(route: APIRoute) -> frozenset[Right | None]:
    """The rights a route needs; nothing if nobody thought of it."""
    return frozenset(call.right for call in _calls(route.dependant) if isinstance(call, _Needs))


def checked(routes: Iterable[Any]) -> None:
    """Default deny: an API with a route that names no right does not start."""
    for route in routes:
        if isinstance(route, APIRoute) and not right_of(route):
            raise AssertionError(f"{route.path} names no right")


def _calls(dependant: Dependant) -> Iterator[Any]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)
