"""Bad keys and tokens: whoever shows many has to wait, by address and by key; counted on this instance."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Final, TypeVar

from starlette.datastructures import Headers
from starlette.types import Scope

from noonday.api.door.credentials import Identify, proofs
from noonday.clock import Clock
from noonday.domain.access import Caller
from noonday.domain.errors import NoondayError, Unidentified
from noonday.domain.keys import digest_of, prefix_of
from noonday.domain.rates import Bucket, Rate, take, whole_seconds

__all__ = ["Guesses", "TooManyGuesses", "address_of"]

_K = TypeVar("_K")
_V = TypeVar("_V")
_BY_ADDRESS: Final = Rate(calls=120, seconds=60.0)
_BY_KEY: Final = Rate(calls=10, seconds=60.0)
_MOST: Final = 10_000  # of each kind that are remembered; the oldest is forgotten


class TooManyGuesses(NoondayError):
    """Too many bad keys or tokens."""

    def __init__(self, wait: float) -> None:
        self.wait = max(1, whole_seconds(wait))
        super().__init__(f"too many bad keys or tokens came from there; try again in {self.wait} s")


class Guesses:
    """Knows callers as `identify` does. A proof that was good before is looked at however many bad ones came
    from the same address, so that nobody shuts others out."""

    def __init__(self, identify: Identify, clock: Clock) -> None:
        self._identify = identify
        self._clock = clock
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()
        self._good: OrderedDict[str, None] = OrderedDict()  # digests of proofs

    async def __call__(self, headers: Headers, address: str) -> Caller | None:
        """Raises as `identify` does, and TooManyGuesses."""
        shown = proofs(headers)
        if not shown:
            return await self._identify(headers)
        digest = digest_of("\n".join(sorted(shown)))
        counted = list(_counted(shown, address))
        if digest not in self._good:
            self._check(counted)
        try:
            caller = await self._identify(headers)
        except Unidentified:
            self._good.pop(digest, None)
            self._count(counted)
            raise
        _remember(self._good, digest, None)
        return caller

    def _check(self, counted: list[tuple[str, str, Rate]]) -> None:
        now = self._clock.monotonic()
        wait = max(take(self._buckets.get((kind, name)), rate, now).wait for kind, name, rate in counted)
        if wait:
            raise TooManyGuesses(wait)

    def _count(self, counted: list[tuple[str, str, Rate]]) -> None:
        for kind, name, rate in counted:
            taking = take(self._buckets.pop((kind, name), None), rate, self._clock.monotonic())
            _remember(self._buckets, (kind, name), taking.bucket)


def address_of(scope: Scope) -> str:
    """Whom to count: an address, or the network of one that has as many addresses as it likes."""
    text = (scope.get("client") or ("",))[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return str(text)
    if isinstance(address, IPv4Address):
        return str(address)
    return str(address.ipv4_mapped or IPv6Network((address, 64), strict=False))


def _counted(shown: set[str], address: str) -> Iterator[tuple[str, str, Rate]]:
    yield "address", address, _BY_ADDRESS
    for prefix in filter(None, map(prefix_of, shown)):
        yield "key", prefix, _BY_KEY


def _remember(kept: OrderedDict[_K, _V], name: _K, value: _V) -> None:
    kept[name] = value
    kept.move_to_end(name)
    if len(kept) > _MOST:
        kept.popitem(last=False)
