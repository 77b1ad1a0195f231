"""How an instance knows its callers: by API keys and tokens, or not at all where the API is open."""

from __future__ import annotations

import structlog

from noonday.api.door.credentials import Credentials, Identify, Tokens, anybody
from noonday.clock import Clock
from noonday.control.keys import Keys
from noonday.control.sessions import Sessions
from noonday.settings import Settings, is_loopback

__all__ = ["identifier", "tell"]

log = structlog.get_logger(__name__)


def identifier(settings: Settings, keys: Keys, sessions: Sessions, clock: Clock) -> Identify:
    if not settings.auth:
        return anybody
    return Credentials(keys, _tokens(settings, clock) if _given(settings) else None, sessions)


def _given(settings: Settings) -> list[str]:
    """What tokens are known by."""
    given = {
        "JWT_SECRET": settings.jwt_secret,
        "JWT_PUBLIC_KEY": settings.jwt_public_key,
        "JWT_JWKS_URL": settings.jwks_url,
    }
    return [name for name, value in given.items() if value is not None]


def _tokens(settings: Settings, clock: Clock) -> Tokens:
    from noonday.instance.tokens import tokens  # noqa: PLC0415 - 9 MB that only instances with tokens load

    return tokens(settings, clock)


async def tell(settings: Settings, keys: Keys) -> None:
    """One line at the start: is the API open, and how does one get in if not?"""
    if not settings.auth:
        words = "the API is open: whoever reaches %s may do everything; AUTH_ENABLED=true closes it"
        say = log.info if is_loopback(settings.host) else log.warning
        say(words, settings.host, action="access", open=True)
        return
    tokens = _given(settings)
    log.info("the API asks everybody for a key or a token", action="access", open=False, tokens=tokens)
    if not tokens and not await keys.any():
        log.warning("there is no key yet, so nobody gets in: noonday key create", action="access", open=False)
