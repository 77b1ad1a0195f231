"""JSON Web Tokens: the kind of a key fixes its algorithm, and a token may only name a key that is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OctKey, RSAKey

from noonday.api.door.token_texts import ALGORITHMS, header_of, read_object
from noonday.clock import Clock
from noonday.domain.access import Caller
from noonday.domain.claims import BadToken, Rules, caller_of
from noonday.ids import new_id
from noonday.settings.secrets import read_public_key

__all__ = [
    "JwtKey",
    "KeySource",
    "Known",
    "Tokens",
    "public_key",
    "secret_key",
    "signed",
]


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
        algorithm, kid = header_of(token)
        for source in self._sources:
            claims = _claims(token, await source.find(algorithm, kid))
            if claims is not None:
                return caller_of(claims, self._rules, self._clock.now())
        raise BadToken("another signature, or by an unknown key")


def _claims(token: str, keys: Sequence[JwtKey]) -> Mapping[str, Any] | None:
    """None unless one of the keys has signed it."""
    for known in keys:
        registry = _Registry(algorithms=[known.algorithm], strict_check_header=False)
        try:
            return read_object(
                jws.deserialize_compact(token, known.key, registry=registry).payload, "payload"
            )
        except (JoseError, ValueError, TypeError):
            continue
    return None


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
