"""What callers show: an API key, a token, or the cookie of a browser that is signed in."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Protocol

from starlette.datastructures import Headers

from noonday.api.door.cookies import session_of
from noonday.control.keys import Keys
from noonday.control.sessions import Sessions
from noonday.domain.access import ANYBODY, Caller
from noonday.domain.claims import BadToken
from noonday.domain.errors import Unidentified
from noonday.domain.keys import START

__all__ = ["Credentials", "Identify", "anybody", "proofs"]

Identify = Callable[[Headers], Awaitable[Caller | None]]  # None = nobody was named; raises NoondayError

_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


async def anybody(_: Headers) -> Caller | None:
    """Where the API is open."""
    return ANYBODY


def proofs(headers: Headers) -> set[str]:
    """Keys and tokens; an empty text for what is neither."""
    shown = {_bearer(value) for value in headers.getlist("authorization")}
    return shown | {value if value.startswith(START) else "" for value in headers.getlist("x-api-key")}


class Tokens(Protocol):
    async def caller(self, token: str) -> Caller:
        """Whose token this is; raises BadToken, or NotAllowed for one without a role here."""
        ...


class Credentials:
    """By an API key or a token in `Authorization: Bearer`, or by a key in `X-API-Key`; else by the cookie of
    a browser that is signed in, which `Guard` takes from our own pages alone where something is changed."""

    def __init__(self, keys: Keys, tokens: Tokens | None = None, sessions: Sessions | None = None) -> None:
        self._keys = keys
        self._tokens = tokens
        self._sessions = sessions

    async def __call__(self, headers: Headers) -> Caller | None:
        shown = proofs(headers)
        if not shown:
            cookie = session_of(headers)
            return await self._sessions.caller(cookie) if self._sessions and cookie else None
        try:
            return await self._caller(shown)
        except BadToken as why:
            raise Unidentified("the key or token is not good, or is not good any more") from why

    async def _caller(self, shown: set[str]) -> Caller:
        if len(shown) > 1:
            raise BadToken("several proofs")
        text = shown.pop()
        if not text.startswith(START):
            if self._tokens is None:
                raise BadToken("tokens are not taken here")
            return await self._tokens.caller(text)
        found = await self._keys.caller(text)
        if found is None:
            raise BadToken("an unknown, revoked or expired key")
        return found


def _bearer(value: str) -> str:
    match = _BEARER.fullmatch(value.strip())
    return match[1] if match else ""
