"""Who asks, for routes: each needs one right, and a route that names none does not start."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from inspect import iscoroutinefunction
from typing import Annotated, Any, Final

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute, iter_route_contexts

from noonday.control.owners import Owners
from noonday.domain.access import Caller, Right
from noonday.domain.errors import NotAllowed, Unidentified

__all__ = ["CALLER", "Who", "api_routes", "checked", "demand", "needs", "open_to_all", "right_of"]

CALLER: Final = "noonday.caller"  # in the scope of a request: set by the door; None = nobody was named


class _Needs:
    def __init__(self, right: Right | None) -> None:
        self.right = right

    async def __call__(self, request: Request) -> None:
        if self.right is not None:
            await demand(request, self.right)


async def demand(request: Request, right: Right) -> Caller:
    """Who asks; raises unless they may do this here, and with the job that the address names."""
    caller = await _who(request)
    if not caller.may(right):
        raise NotAllowed(
            f"this needs the right {right}, which the role {caller.role} of {caller.name} has not"
        )
    if caller.confined:
        owners: Owners = request.app.state.services.owners
        await owners.confine(
            caller, job=request.path_params.get("job"), execution=request.path_params.get("execution")
        )
    return caller


async def _who(request: Request) -> Caller:
    found: Caller | None = request.scope.get(CALLER)
    if found is None:
        raise Unidentified
    return found


Who = Annotated[Caller, Depends(_who)]


def needs(right: Right) -> Any:
    """For `dependencies=[…]` of a router or a route; the innermost one counts as well as the outer ones.

    Where the path names a `{job}` or an `{execution}`, a caller of a service finds its own alone.
    """
    return Depends(_Needs(right))


open_to_all: Final[Any] = Depends(_Needs(None))  # probes, and what brings its own proof


def right_of(route: APIRoute) -> frozenset[Right | None]:
    """The rights a route needs; nothing if nobody thought of it."""
    return frozenset(call.right for call in _calls(route.dependant) if isinstance(call, _Needs))


def api_routes(routes: Sequence[Any]) -> Iterator[APIRoute]:
    """All routes of ours in an application, those of its routers included."""
    for context in iter_route_contexts(routes):
        if isinstance(context.original_route, APIRoute):
            yield context.original_route


def checked(routes: Sequence[Any]) -> None:
    """Default deny: an API with a route that names no right, or that cannot name one, does not start. Nor one
    with a route that would wait for threads: plain functions are called in them."""
    for context in iter_route_contexts(routes):
        route = context.original_route
        if not isinstance(route, APIRoute) or not right_of(route):
            raise AssertionError(f"{getattr(route, 'path', route)} names no right")
        if plain := [call for call in _calls(route.dependant) if not _awaited(call)]:
            raise AssertionError(f"{route.path} waits for a thread to call {plain}")


def _awaited(call: Any) -> bool:
    return iscoroutinefunction(call) or iscoroutinefunction(type(call).__call__)


def _calls(dependant: Dependant) -> Iterator[Any]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)
