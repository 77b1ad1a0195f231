"""The keys of an identity provider, fetched from its JWKS address and kept while it is away."""

from __future__ import annotations

import asyncio
import socket
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import structlog
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey
from yarl import URL

from noonday.api.door.token_texts import ALGORITHMS
from noonday.api.door.tokens import JwtKey
from noonday.api.strict_json import NotJson, parse
from noonday.clock import Clock
from noonday.domain.errors import Invalid, Unavailable
from noonday.http_client import AddrInfo, CallFailed, Opener, Origin, head_of
from noonday.settings.sources import without_password

__all__ = ["Jwks", "fetched", "keys_of"]

log = structlog.get_logger(__name__)

Fetch = Callable[[str], Awaitable[bytes]]

_FRESH: Final = 600.0  # seconds after which the keys are fetched again
_PATIENCE: Final = 10.0  # seconds between two tries, however many unknown keys are named meanwhile
_TIMEOUT: Final = 5.0  # seconds
_LARGEST: Final = 256 << 10
_MOST_KEYS: Final = 100
_ALGORITHMS: Final = frozenset({ALGORITHMS["RSA"], ALGORITHMS["EC"]})
_RSA_CHARS: Final = range(342, 1367)  # of a modulus of 2048 to 8192 bits, in base64


class Jwks:
    def __init__(self, url: str, clock: Clock, fetch: Fetch | None = None) -> None:
        self._url = url
        self._clock = clock
        self._fetch = fetch or fetched
        self._keys: Sequence[JwtKey] = ()
        self._fetched_at: float | None = None  # monotonic, as the next one
        self._tried_at: float | None = None
        self._fetching = asyncio.Lock()

    async def find(self, algorithm: str, kid: str | None) -> Sequence[JwtKey]:
        """Raises Unavailable as long as the keys could never be fetched."""
        if algorithm not in _ALGORITHMS:
            return ()
        if self._due(_FRESH, self._fetched_at):
            await self._refresh()
        found = self._known(algorithm, kid)
        if not found and kid is not None:
            await self._refresh()
            found = self._known(algorithm, kid)
        return found

    def _known(self, algorithm: str, kid: str | None) -> Sequence[JwtKey]:
        """A token that names no key means the only one there is."""
        fit = [key for key in self._keys if key.algorithm == algorithm]
        if kid is None:
            return fit if len(fit) == 1 else []
        return [key for key in fit if key.kid == kid]

    async def _refresh(self) -> None:
        """Unless that was tried a moment ago. Whoever has keys at hand does not wait for another's try."""
        if self._fetching.locked() and self._fetched_at is not None:
            return
        async with self._fetching:
            if not self._due(_PATIENCE, self._tried_at):
                self._insist()
                return
            self._tried_at = self._clock.monotonic()
            try:
                self._keys = keys_of(await self._fetch(self._url))
                self._fetched_at = self._clock.monotonic()
            except (CallFailed, TimeoutError, ValueError) as exc:
                reason = str(exc) or type(exc).__name__
                log.warning(
                    "the keys of tokens cannot be fetched",
                    action="jwks",
                    url=without_password(self._url),
                    error=reason,
                )
            self._insist()

    def _insist(self) -> None:
        if self._fetched_at is None:
            raise Unavailable("the keys that tokens are checked with cannot be fetched now")

    def _due(self, span: float, since: float | None) -> bool:
        return since is None or self._clock.monotonic() - since >= span


async def fetched(url: str) -> bytes:
    """No redirects, no proxy of the environment, not more than a bounded size."""
    place = URL(url)
    document = _Document()
    async with asyncio.timeout(_TIMEOUT):
        connection = await Opener(_looked_up, _TIMEOUT).open(Origin.of(place))
        try:
            await connection.exchange(head_of("GET", place, _headers(place), 0), document)
        finally:
            connection.close()
    return document.whole()


def _headers(place: URL) -> dict[str, str]:
    """With who asks, where the address says it."""
    headers = {"Accept": "application/json"}
    if place.user is not None:
        named = f"{place.user}:{place.password or ''}".encode()
        headers["Authorization"] = f"Basic {b64encode(named).decode()}"
    return headers


async def _looked_up(host: str, port: int) -> Sequence[AddrInfo]:
    return await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)


class _Document:
    """The answer as it is read."""

    def __init__(self) -> None:
        self._status = 0
        self._data = bytearray()

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._status = status

    def add(self, chunk: bytes) -> bool:
        self._data += chunk[: _LARGEST + 1]
        return self._status == 200 and len(self._data) <= _LARGEST

    def whole(self) -> bytes:
        if self._status != 200:
            raise ValueError(f"the answer is HTTP {self._status}")
        if len(self._data) > _LARGEST:
            raise ValueError("the answer is too large")
        return bytes(self._data)


def keys_of(document: bytes) -> Sequence[JwtKey]:
    """The keys that RS256 and ES256 can be checked with; others that the set may hold are left out."""
    try:
        found = parse(document)
    except (NotJson, Invalid) as exc:
        raise ValueError("the answer is not JSON") from exc
    listed = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(listed, list) or len(listed) > _MOST_KEYS:
        raise ValueError("the answer is no set of keys")
    keys = list(_read(listed))
    if not keys:
        raise ValueError("the answer holds no key for RS256 or ES256")
    return keys


def _read(listed: Sequence[Any]) -> Iterator[JwtKey]:
    for one in listed:
        if isinstance(one, dict) and _usable(one):
            kind = RSAKey if one["kty"] == "RSA" else ECKey
            try:
                yield JwtKey(kind.import_key(one), one.get("kid"))
            except (JoseError, ValueError, TypeError, KeyError):
                log.warning("a key of the set cannot be read", action="jwks", kid=str(one.get("kid"))[:200])


def _usable(key: dict[str, Any]) -> bool:
    """Public, for signatures, and for the one algorithm that fits its kind. A shared secret is never one."""
    kind = key.get("kty")
    if kind not in ("RSA", "EC") or "d" in key or key.get("use", "sig") != "sig":
        return False
    if key.get("alg", ALGORITHMS[kind]) != ALGORITHMS[kind] or not isinstance(key.get("kid"), str | None):
        return False
    return key.get("crv") == "P-256" if kind == "EC" else len(str(key.get("n"))) in _RSA_CHARS
