"""How a route can say no: told from its parameters, its rights and what it depends on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from enum import Enum, auto
from typing import Any, Final, NamedTuple, get_args

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute

from noonday.api.door.rates import starts_something
from noonday.api.services import Ask

__all__ = ["REFUSALS", "Proof", "refusals"]

_STARTS = ("run", "trigger")  # actions of a body that are counted
_NAMES_SOMETHING = frozenset({"instance", "job", "job_id", "jobs"})  # which may not be there
_READING = frozenset({"GET", "HEAD"})


class Refusal(NamedTuple):
    name: str  # in the document; Python's own names differ by version
    words: str


REFUSALS: Final[Mapping[int, Refusal]] = {
    400: Refusal("BadRequest", "the address or the body cannot be read"),
    401: Refusal("Unauthorized", "no valid key or token was sent"),
    403: Refusal("Forbidden", "the caller may not do this, or a page from another origin asks"),
    404: Refusal("NotFound", "there is no such thing"),
    409: Refusal("Conflict", "it does not fit the present state"),
    410: Refusal("Gone", "the attempt that this belongs to is over"),
    412: Refusal("PreconditionFailed", "it was changed since it was read"),
    413: Refusal("ContentTooLarge", "the body is too large"),
    415: Refusal("UnsupportedMediaType", "the body is of another kind than JSON"),
    421: Refusal("MisdirectedRequest", "an unknown name in the Host header"),
    422: Refusal("UnprocessableContent", "a value is wrong; `errors` names each"),
    429: Refusal("TooManyRequests", "too many in a short time; `Retry-After` says when to come back"),
    503: Refusal("ServiceUnavailable", "the database, or something else needed, is down or switched off"),
}
_SERVICES = get_args(Ask)[1].dependency


class Proof(Enum):
    """What a caller shows: a key or a token, the token of one callback, or nothing that the door knows."""

    KEY = auto()
    CALLBACK = auto()
    NONE = auto()


def refusals(route: APIRoute, method: str, given: Set[tuple[str, str]], proof: Proof) -> set[int]:
    """Status codes beside those that the route names itself; `given` is what it takes: place and name."""
    changes = method not in _READING
    rules = {
        (400, 421): True,
        (401, 403): proof is not Proof.NONE,
        (410,): proof is Proof.CALLBACK,
        (403, 409, 413, 415): changes,
        (404,): any(place == "path" or name in _NAMES_SOMETHING for place, name in given),
        (412,): ("header", "if-match") in given,
        (422,): changes or bool(given),
        (429,): any(starts_something(method, route.path_format, {"action": one}) for one in _STARTS),
        (503,): _SERVICES in _calls(route.dependant),
    }
    return {status for statuses, holds in rules.items() if holds for status in statuses}


def _calls(dependant: Dependant) -> Iterator[Any]:
    yield dependant.call
    for inner in dependant.dependencies:
        yield from _calls(inner)
