"""JSON Web Tokens: the kind of a key fixes its algorithm, and a token may only name a key that is known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OctKey, RSAKey
from joserfc.util import urlsafe_b64decode

from noonday.api.strict_json import NotJson, parse
from noonday.clock import Clock
from noonday.domain.access import Caller
from noonday.domain.claims import BadToken, Rules, caller_of
from noonday.domain.errors import Invalid
from noonday.ids import new_id
from noonday.settings.secrets import read_public_key

__all__ = [
    "ALGORITHMS",
    "JwtKey",
    "KeySource",
    "Known",
    "Tokens",
    "end_of",
    "public_key",
    "secret_key",
    "signed",
]

ALGORITHMS: Final = {"oct": "HS256", "RSA": "RS256", "EC": "ES256"}  # by the kind of the key
_TOKEN = re.compile(r"([\w-]{1,512})\.[\w-]{1,6000}\.[\w-]{1,1400}", re.ASCII)
_LONGEST_KID: Final = 200
# Each of these would let a token bring its own key, or change what its bytes mean.
_REFUSED: Final = frozenset({"jku", "jwk", "x5u", "x5c", "crit", "b64", "zip", "enc", "cty"})
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})


class _Registry(jws.JWSRegistry):
    max_signature_length = 1400  # of the largest RSA key that is taken


@dataclass(frozen=True, slots=True)
class JwtKey:
    """`kid` None = for tokens that name any key or none."""

    key: OctKey | RSAKey | ECKey
    kid: str | None = None

    @property
    def algorithm(self) -> str:
        return ALGORITHMS[self.key.key_type]


class KeySource(Protocol):
    async def find(self, algorithm: str, kid: str | None) -> Sequence[JwtKey]:
        """The keys that a token with this header may be signed with: few, or none."""
        ...


class Known:
    """Keys that the settings give."""

    def __init__(self, *keys: JwtKey) -> None:
        self._keys = keys

    async def find(self, algorithm: str, kid: str | None) -> Sequence[JwtKey]:
        return [key for key in self._keys if key.algorithm == algorithm and key.kid in (None, kid)]


def secret_key(secret: str) -> JwtKey:
    return JwtKey(OctKey.import_key(secret.encode()))


def public_key(pem: str) -> JwtKey:
    return JwtKey(read_public_key(pem))


class Tokens:
    def __init__(self, sources: Sequence[KeySource], rules: Rules, clock: Clock) -> None:
        self._sources = sources
        self._rules = rules
        self._clock = clock

    async def caller(self, token: str) -> Caller:
        """Whose token this is; raises BadToken, or NotAllowed for one without a role here."""
        algorithm, kid = _header(token)
        for source in self._sources:
            claims = _claims(token, await source.find(algorithm, kid))
            if claims is not None:
                return caller_of(claims, self._rules, self._clock.now())
        raise BadToken("another signature, or by an unknown key")


def end_of(token: str) -> datetime:
    """When a token ends that was found good."""
    return datetime.fromtimestamp(_object(_decoded(token.split(".")[1]), "payload")["exp"], UTC)


def _header(token: str) -> tuple[str, str | None]:
    """Which algorithm and which key it names; looked at before anything is done with either."""
    shape = _TOKEN.fullmatch(token)
    if shape is None:
        raise BadToken("no token at all")
    header = _object(_decoded(shape[1]), "header")
    if refused := _REFUSED & header.keys():
        raise BadToken(f"{min(refused)} in the header")
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ", "jwt")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS.values():
        raise BadToken("another algorithm")
    if kid is not None and not (isinstance(kid, str) and 0 < len(kid) <= _LONGEST_KID):
        raise BadToken("kid is no name")
    if not isinstance(kind, str) or kind.lower() not in _TYPES:
        raise BadToken("another type")
    return algorithm, kid


def _claims(token: str, keys: Sequence[JwtKey]) -> Mapping[str, Any] | None:
    """None unless one of the keys has signed it."""
    for known in keys:
        registry = _Registry(algorithms=[known.algorithm], strict_check_header=False)
        try:
            return _object(jws.deserialize_compact(token, known.key, registry=registry).payload, "payload")
        except (JoseError, ValueError, TypeError):
            continue
    return None


def _decoded(part: str) -> bytes:
    try:
        return urlsafe_b64decode(part.encode())
    except ValueError as exc:
        raise BadToken("no base64") from exc


def _object(text: bytes, what: str) -> dict[str, Any]:
    try:
        value = parse(text)
    except (NotJson, Invalid) as exc:
        raise BadToken(f"the {what} is not JSON") from exc
    if not isinstance(value, dict):
        raise BadToken(f"the {what} is no object")
    return value


def signed(secret: str, caller: Caller, rules: Rules, now: datetime, lifetime: timedelta) -> str:
    """A token for this caller, as this scheduler takes it."""
    claims: dict[str, Any] = {
        "iss": rules.issuer,
        "aud": rules.audience,
        "sub": caller.name,
        rules.role_claim: caller.role.value,
        "iat": int(now.timestamp()),
        "exp": int((now + lifetime).timestamp()),
        "jti": new_id(now),
    }
    if caller.service is not None:
        claims["service"] = caller.service
    return jwt.encode({"alg": "HS256"}, claims, secret_key(secret).key)
