"""Callers for tests: tokens of every kind, good and bad, and the scheduler that is to tell them apart."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from joserfc import jws
from joserfc.jwk import ECKey, OctKey, RSAKey

from noonday.api.door.credentials import Credentials
from noonday.api.door.tokens import KeySource, Known, Tokens, secret_key
from noonday.api.services import ApiServices
from noonday.clock import Clock
from noonday.control.keys import Keys
from noonday.control.sessions import Sessions
from noonday.domain.access import Caller, Role
from noonday.domain.claims import BadToken, Rules
from tests.api.caller import Api, StillClock, client_of
from tests.factories import NOON

SECRET = "bPzqGZ7V0HnJvOq6vR0z1H4sQxLk2m9dT5wE"
RULES = Rules(issuer="https://idp.example", audience="noonday")
SECONDS = int(NOON.timestamp())
ALL = frozenset({"HS256", "HS384", "HS512", "RS256", "RS512", "PS256", "ES256", "ES384", "none"})


def claims(**changes: Any) -> dict[str, Any]:
    """Of a good token; a change to None leaves the claim out."""
    made = {
        "iss": RULES.issuer,
        "aud": RULES.audience,
        "sub": "ada",
        "role": "operator",
        "iat": SECONDS,
        "exp": SECONDS + 3600,
    }
    return {name: value for name, value in (made | changes).items() if value is not None}


def part(value: Any) -> str:
    text = value if isinstance(value, bytes) else json.dumps(value).encode()
    return urlsafe_b64encode(text).rstrip(b"=").decode()


def token(
    made: Mapping[str, Any] | bytes | None = None,
    key: OctKey | RSAKey | ECKey | None = None,
    **header: Any,
) -> str:
    """Signed by whoever has the key, whatever its header and its claims say."""
    head = {"alg": "HS256", "typ": "JWT"} | header
    head = {name: value for name, value in head.items() if value is not None}
    payload = made if isinstance(made, bytes) else json.dumps(claims() if made is None else made).encode()
    signing = f"{part(head)}.{part(payload)}"
    return f"{signing}.{part(signature(signing, key or OctKey.import_key(SECRET), str(head.get('alg'))))}"


def signature(signing: str, key: OctKey | RSAKey | ECKey, algorithm: str) -> bytes:
    name = algorithm if algorithm in ALL - {"none"} else "HS256"
    return jws.JWSRegistry.algorithms[name].sign(signing.encode(), key)


def guarded(services: ApiServices, *sources: KeySource) -> tuple[ApiServices, Keys]:
    """The same API, closed: by API keys, and by tokens with the secret above unless told otherwise."""
    keys = Keys(services.db, services.clock)
    tokens = Tokens(sources or (Known(secret_key(SECRET)),), RULES, services.clock)
    return replace(
        services, identify=Credentials(keys, tokens, Sessions(services.db, services.clock)), keys=keys
    ), keys


async def judged(source: KeySource, text: str, clock: Clock | None = None) -> Caller | None:
    """Whose token this is; None if it is not good."""
    try:
        return await Tokens([source], RULES, clock or StillClock()).caller(text)
    except BadToken:
        return None


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


@asynccontextmanager
async def closed(services: ApiServices, *sources: KeySource) -> AsyncIterator[Api]:
    assert isinstance(services.clock, StillClock)
    made, _ = guarded(services, *sources)
    async with client_of(made) as client:
        yield Api(client, services.db, services.clock)


async def key_for(keys: Keys, role: Role, service: str | None = None) -> str:
    _, text = await keys.create(f"the {role}", role, service=service, by="tests")
    return text
