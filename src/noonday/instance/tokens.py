"""Tokens as the settings describe them: signed with a secret or a key that is given, or of a provider."""

from __future__ import annotations

from noonday.api.door.jwks import Jwks
from noonday.api.door.tokens import KeySource, Known, Tokens, public_key, secret_key
from noonday.clock import Clock
from noonday.settings import Settings

__all__ = ["tokens"]


def tokens(settings: Settings, clock: Clock) -> Tokens:
    given = []
    if settings.jwt_secret is not None:
        given.append(secret_key(settings.jwt_secret.get_secret_value()))
    if settings.jwt_public_key is not None:
        given.append(public_key(settings.jwt_public_key.get_secret_value()))
    sources: list[KeySource] = [Known(*given)] if given else []
    if settings.jwks_url is not None:
        sources.append(Jwks(settings.jwks_url, clock))
    return Tokens(sources, settings.token_rules, clock)
