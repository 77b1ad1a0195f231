"""Web pages of other origins: those that FRONTEND_URL names may call from a browser, and no others."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Cors"]

_METHODS: Final = "GET, HEAD, POST, PUT, PATCH, DELETE"
_SENT: Final = (
    "Authorization, Content-Type, Idempotency-Key, If-Match, If-None-Match, Last-Event-ID, Prefer, "
    "traceparent, X-API-Key, X-Request-ID"
)
_SEEN: Final = (
    "Deprecation, ETag, Idempotency-Replayed, Link, Location, Preference-Applied, RateLimit, "
    "RateLimit-Policy, Retry-After, Sunset, X-Request-ID"
)
_REMEMBERED: Final = "600"  # seconds that a browser need not ask again


class Cors:
    """No cookies are allowed: whoever calls sends a token in a header, which no other page can make it do."""

    def __init__(self, app: ASGIApp, origins: Collection[str]) -> None:
        self.app = app
        self.origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self.origins:
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin", "")
        known = origin in self.origins
        asks_first = scope["method"] == "OPTIONS" and "access-control-request-method" in headers
        answer = _preflight() if known and asks_first else self.app
        await answer(scope, receive, _allowing(send, origin if known else None))


def _preflight() -> Response:
    allowed = {
        "Access-Control-Allow-Methods": _METHODS,
        "Access-Control-Allow-Headers": _SENT,
        "Access-Control-Max-Age": _REMEMBERED,
    }
    return Response(status_code=204, headers=allowed)


def _allowing(send: Send, origin: str | None) -> Send:
    async def allowed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers.add_vary_header("Origin")
            if origin is not None:
                headers["Access-Control-Allow-Origin"] = origin
                headers["Access-Control-Expose-Headers"] = _SEEN
        await send(message)

    return allowed
