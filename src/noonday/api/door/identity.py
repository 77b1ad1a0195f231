"""Who knocks: every request gets a caller before any route is asked, or is refused."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qsl

import structlog
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from noonday.api.callers import CALLER, api_routes, right_of
from noonday.api.door.guesses import Guesses, TooManyGuesses, address_of
from noonday.api.problems import answer, refused
from noonday.domain.access import Caller
from noonday.domain.claims import BadToken
from noonday.domain.errors import NoondayError, Unidentified

__all__ = ["Identity"]

log = structlog.get_logger(__name__)

_IN_ADDRESS: Final = frozenset(
    {"access_token", "api_key", "apikey", "authorization", "bearer", "id_token", "jwt", "token", "x-api-key"}
)


class Identity:
    """Whoever is not known gets no further than to the routes that are open to all."""

    def __init__(self, app: ASGIApp, identify: Guesses) -> None:
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
                await _refusal(error)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    async def _known(self, scope: Scope) -> Caller:
        names = {
            name.lower() for name, _ in parse_qsl(scope.get("query_string", b"").decode("latin-1"), True)
        }
        if _IN_ADDRESS & names:
            raise Unidentified("a token in an address ends up in logs: send it as Authorization: Bearer …")
        caller = await self.identify(Headers(scope=scope), address_of(scope))
        if caller is None:
            raise Unidentified
        return caller

    def _is_open(self, scope: Scope) -> bool:
        if self._open is None:
            routes = [route for route in api_routes(scope["app"].routes) if right_of(route) == {None}]
            self._open = [(route.path_regex, route.methods or set()) for route in routes]
        return any(regex.match(scope["path"]) and scope["method"] in methods for regex, methods in self._open)


def _refusal(error: NoondayError) -> Response:
    if isinstance(error, TooManyGuesses):
        return answer(429, str(error), headers={"Retry-After": str(error.wait)})
    return refused(error, None)
