"""Who knocks: every request gets a caller before any route is asked, or is refused."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import parse_qsl

import structlog
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from noonday.api.callers import CALLER, api_routes, right_of
from noonday.api.door.cookies import session_of
from noonday.api.door.tokens import Tokens
from noonday.api.problems import refused
from noonday.control.keys import Keys
from noonday.control.sessions import Sessions
from noonday.domain.access import ANYBODY, Caller
from noonday.domain.claims import BadToken
from noonday.domain.errors import NoondayError, Unidentified
from noonday.domain.keys import START

__all__ = ["Credentials", "Identify", "Identity", "anybody"]

log = structlog.get_logger(__name__)

Identify = Callable[[Headers], Awaitable[Caller | None]]  # None = nobody was named; raises NoondayError

_IN_ADDRESS: Final = frozenset(
    {"access_token", "api_key", "apikey", "authorization", "bearer", "id_token", "jwt", "token", "x-api-key"}
)
_BEARER = re.compile(r"bearer +(\S+)", re.IGNORECASE)


async def anybody(_: Headers) -> Caller | None:
    """Where the API is open."""
    return ANYBODY


class Credentials:
    """By an API key or a token in `Authorization: Bearer`, or by a key in `X-API-Key`; else by the cookie of
    a browser that is signed in, which `Guard` takes from our own pages alone where something is changed."""

    def __init__(self, keys: Keys, tokens: Tokens | None = None, sessions: Sessions | None = None) -> None:
        self._keys = keys
        self._tokens = tokens
        self._sessions = sessions

    async def __call__(self, headers: Headers) -> Caller | None:
        shown = {_bearer(value) for value in headers.getlist("authorization")}
        shown |= {value if value.startswith(START) else "" for value in headers.getlist("x-api-key")}
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


class Identity:
    """Whoever is not known gets no further than to the routes that are open to all."""

    def __init__(self, app: ASGIApp, identify: Identify) -> None:
        self.app = app
        self.identify = identify
        self._open: list[tuple[re.Pattern[str], set[str]]] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope[CALLER] = None
        try:
            scope[CALLER] = await self._known(scope)
        except NoondayError as error:
            if not self._is_open(scope):
                if isinstance(error.__cause__, BadToken):  # what the answer does not tell
                    log.info("a caller was refused", action="identify", reason=str(error.__cause__))
                await refused(error, None)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _known(self, scope: Scope) -> Caller:
        names = {
            name.lower() for name, _ in parse_qsl(scope.get("query_string", b"").decode("latin-1"), True)
        }
        if _IN_ADDRESS & names:
            raise Unidentified("a token in an address ends up in logs: send it as Authorization: Bearer …")
        caller = await self.identify(Headers(scope=scope))
        if caller is None:
            raise Unidentified
        return caller

    def _is_open(self, scope: Scope) -> bool:
        if self._open is None:
            routes = [route for route in api_routes(scope["app"].routes) if right_of(route) == {None}]
            self._open = [(route.path_regex, route.methods or set()) for route in routes]
        return any(regex.match(scope["path"]) and scope["method"] in methods for regex, methods in self._open)
