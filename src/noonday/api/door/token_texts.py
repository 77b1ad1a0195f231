"""The text of a JSON Web Token, read before anything is known of its signature."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Any, Final

from noonday.api.strict_json import NotJson, parse
from noonday.domain.claims import BadToken
from noonday.domain.errors import Invalid

__all__ = ["ALGORITHMS", "end_of", "header_of", "read_object"]

ALGORITHMS: Final = {"oct": "HS256", "RSA": "RS256", "EC": "ES256"}  # by the kind of the key
_TOKEN = re.compile(r"([\w-]{1,512})\.[\w-]{1,6000}\.[\w-]{1,1400}", re.ASCII)
_LONGEST_KID: Final = 200
# Each of these would let a token bring its own key, or change what its bytes mean.
_REFUSED: Final = frozenset({"jku", "jwk", "x5u", "x5c", "crit", "b64", "zip", "enc", "cty"})
_TYPES: Final = frozenset({"jwt", "at+jwt", "application/at+jwt"})


def end_of(token: str) -> datetime:
    """When a token ends that was found good."""
    return datetime.fromtimestamp(read_object(_decoded(token.split(".")[1]), "payload")["exp"], UTC)


def header_of(token: str) -> tuple[str, str | None]:
    """Which algorithm and which key it names; looked at before anything is done with either."""
    shape = _TOKEN.fullmatch(token)
    if shape is None:
        raise BadToken("no token at all")
    header = read_object(_decoded(shape[1]), "header")
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


def _decoded(part: str) -> bytes:
    """Only of text that is written as it should be: the same bytes have no second form."""
    text = part.encode()
    try:
        found = urlsafe_b64decode(text + b"=" * (-len(text) % 4))
    except ValueError as exc:
        raise BadToken("no base64") from exc
    if urlsafe_b64encode(found).rstrip(b"=") != text:
        raise BadToken("no base64")
    return found


def read_object(text: bytes, what: str) -> dict[str, Any]:
    try:
        value = parse(text)
    except (NotJson, Invalid) as exc:
        raise BadToken(f"the {what} is not JSON") from exc
    if not isinstance(value, dict):
        raise BadToken(f"the {what} is no object")
    return value
