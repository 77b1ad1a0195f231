"""How an instance knows its callers: by API keys and tokens, or not at all where the API is open."""

from __future__ import annotations

import structlog

from noonday.api.door.credentials import Credentials, Identify, anybody
from noonday.api.door.jwks import Jwks
from noonday.api.door.tokens import KeySource, Known, Tokens, public_key, secret_key
from noonday.clock import Clock
from noonday.control.keys import Keys
from noonday.control.sessions import Sessions
from noonday.settings import Settings, is_loopback

__all__ = ["identifier", "tell"]

log = structlog.get_logger(__name__)


def identifier(settings: Settings, keys: Keys, sessions: Sessions, clock: Clock) -> Identify:
    if not settings.auth:
        return anybody
    sources = _sources(settings, clock)
    tokens = Tokens(sources, settings.token_rules, clock) if sources else None
    return Credentials(keys, tokens, sessions)


def _sources(settings: Settings, clock: Clock) -> list[KeySource]:
    given = []
    if settings.jwt_secret is not None:
        given.append(secret_key(settings.jwt_secret.get_secret_value()))
    if settings.jwt_public_key is not None:
        given.append(public_key(settings.jwt_public_key.get_secret_value()))
    sources: list[KeySource] = [Known(*given)] if given else []
    if settings.jwks_url is not None:
        sources.append(Jwks(settings.jwks_url, clock))
    return sources


async def tell(settings: Settings, keys: Keys) -> None:
    """One line at the start: is the API open, and how does one get in if not?"""
    if not settings.auth:
        words = "the API is open: whoever reaches %s may do everything; AUTH_ENABLED=true closes it"
        say = log.info if is_loopback(settings.host) else log.warning
        say(words, settings.host, action="access", open=True)
        return
    given = (settings.jwt_secret, settings.jwt_public_key, settings.jwks_url)
    names = ("JWT_SECRET", "JWT_PUBLIC_KEY", "JWT_JWKS_URL")
    tokens = [name for name, value in zip(names, given, strict=True) if value is not None]
    log.info("the API asks everybody for a key or a token", action="access", open=False, tokens=tokens)
    if not tokens and not await keys.any():
        log.warning("there is no key yet, so nobody gets in: noonday key create", action="access", open=False)
