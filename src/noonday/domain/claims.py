"""What the claims of a token say about its holder, once its signature has proved good."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from noonday.domain.access import Caller, Role
from noonday.domain.errors import NotAllowed

__all__ = ["BadToken", "Rules", "caller_of"]

LEEWAY: Final = 30.0  # seconds by which the clocks of two machines may differ
_LONGEST_NAME: Final = 200


class BadToken(Exception):
    """Why a token is refused: for the log, never for whoever sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    issuer: str
    audience: str
    role_claim: str = "role"  # a name, or a path such as realm_access.roles


def caller_of(claims: Mapping[str, Any], rules: Rules, now: datetime) -> Caller:
    """Raises BadToken for a token that is not meant for us now, NotAllowed for one without a role here."""
    _check_times(claims, now.timestamp())
    if claims.get("iss") != rules.issuer:
        raise BadToken("another issuer")
    audience = claims.get("aud")
    if rules.audience not in (audience if isinstance(audience, list) else [audience]):
        raise BadToken("another audience")
    name = _name(claims, "sub")
    role = _role(_found(claims, rules.role_claim))
    if role is None:
        raise NotAllowed(f"the token of {name} names no role of this scheduler")
    service = _name(claims, "service") if role is Role.SERVICE else None
    return Caller(name=name, role=role, service=service)


def _check_times(claims: Mapping[str, Any], now: float) -> None:
    expires, begins, issued = (_instant(claims, name) for name in ("exp", "nbf", "iat"))
    if expires is None:
        raise BadToken("no expiry")
    if expires + LEEWAY <= now:
        raise BadToken("expired")
    if any(at is not None and at - LEEWAY > now for at in (begins, issued)):
        raise BadToken("not yet good")


def _instant(claims: Mapping[str, Any], name: str) -> float | None:
    """Seconds since 1970. A claim that is there must be a number: null is no way to leave it out."""
    if name not in claims:
        return None
    value = claims[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadToken(f"{name} is no time")
    return value


def _name(claims: Mapping[str, Any], claim: str) -> str:
    value = claims.get(claim)
    if not isinstance(value, str) or not value.strip():
        raise BadToken(f"no {claim}")
    if len(value) > _LONGEST_NAME or not value.isprintable():
        raise BadToken(f"{claim} is no name")
    return value


def _found(claims: Mapping[str, Any], path: str) -> Any:
    """The claim of that very name, else what the path leads to."""
    if path in claims:
        return claims[path]
    here: Any = claims
    for step in path.split("."):
        if not isinstance(here, Mapping):
            return None
        here = here.get(step)
    return here


def _role(value: Any) -> Role | None:
    """The strongest of those that are named; `service` confines, so it stands alone or counts for nothing."""
    words = value if isinstance(value, list) else [value]
    known = {role for role in Role if role.value in words}
    if known == {Role.SERVICE}:
        return Role.SERVICE
    return next((role for role in (Role.ADMIN, Role.OPERATOR, Role.VIEWER) if role in known), None)
