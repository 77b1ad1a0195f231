"""Calls before they are made: vetted, and all worked out that is the same for every run of a target."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any, Final, Generic, NamedTuple, TypeVar

from yarl import URL

from noonday.http_client import CODINGS, REPEATABLE, Origin, Outline, outline
from noonday.targets.answers import NO_HEADERS
from noonday.targets.config import TargetsConfig
from noonday.targets.headers import job_headers
from noonday.targets.network import vet

T = TypeVar("T")

_MOST: Final = 1024  # calls that are remembered
_LARGEST: Final = 8 * 1024  # bytes of one that is


class Call(NamedTuple):
    method: str
    url: str
    headers: Mapping[str, str] = NO_HEADERS  # the job's own
    body: bytes = b""
    content_type: str | None = None
    callback: bool = False  # may answer 202 and report later


class Prepared:
    """A call that may be made, and what follows from it whichever run it is made for."""

    __slots__ = (
        "_headers",
        "_method",
        "_outline",
        "bodiless",
        "body",
        "callback",
        "origin",
        "repeatable",
        "url",
    )

    def __init__(self, call: Call, url: URL, headers: Mapping[str, str]) -> None:
        self._method = call.method
        self._headers = headers
        self._outline: Outline | None = None
        self.url = url
        self.origin = _origin(url)
        self.body = call.body
        self.callback = call.callback
        self.repeatable = call.method in REPEATABLE
        self.bodiless = call.method == "HEAD"

    def request(self, lines: str) -> bytes:
        """With the headers of one run, in lines. Raises ValueError for what no header can hold."""
        made = self._outline
        if made is None:
            made = self._outline = outline(self._method, self.url, self._headers, len(self.body))
        return made.filled(lines, self.body)

    @property
    def size(self) -> int:
        """About how many bytes it takes to remember it."""
        return len(self.body) + sum(len(name) + len(value) for name, value in self._headers.items())


class Preparer:
    """Prepares the calls of an instance."""

    def __init__(self, config: TargetsConfig) -> None:
        self._vet = lru_cache(maxsize=1024)(partial(vet, policy=config.networks))
        self._usual = {
            "User-Agent": config.user_agent,
            "Accept": "application/json, */*;q=0.5",
            "Accept-Encoding": CODINGS,
        }

    def prepare(self, call: Call) -> Prepared:
        """Raises Refused."""
        return Prepared(call, self._vet(call.url), self._headers(call))

    def _headers(self, call: Call) -> dict[str, str]:
        """The job's own come last, and before those that are only usual."""
        given = job_headers(call.headers)
        names = {name.lower() for name in given}
        usual = {"Content-Type": call.content_type, **self._usual} if call.content_type else self._usual
        return {name: value for name, value in usual.items() if name.lower() not in names} | given


class Remembered(Generic[T]):
    """The calls of targets that are called in the same way each time.

    A target never changes, so the very same object has the very same call: nobody compares URLs or bodies.
    """

    def __init__(self, prepare: Callable[[T], Prepared]) -> None:
        self._prepare = prepare
        self._known: dict[int, tuple[Any, Prepared]] = {}  # by the id of the target, which is kept beside it

    def of(self, target: T) -> Prepared:
        """Raises Refused, which is not remembered."""
        found = self._known.get(id(target))
        if found is not None:
            return found[1]
        made = self._prepare(target)
        if made.size <= _LARGEST:
            if len(self._known) >= _MOST:
                self._known.clear()
            self._known[id(target)] = (target, made)
        return made

    def __len__(self) -> int:
        return len(self._known)


_origin = lru_cache(maxsize=1024)(Origin.of)
