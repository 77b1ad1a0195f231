"""Who knocks: every request gets a caller before any route is asked, or is refused."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from noonday.api.callers import CALLER
from noonday.domain.access import ANYBODY, Caller

__all__ = ["Identify", "Identity", "anybody"]

Identify = Callable[[Headers], Awaitable[Caller | None]]  # None = nobody was named; raises NotAllowed


async def anybody(_: Headers) -> Caller | None:
    """Where the API is open."""
    return ANYBODY


class Identity:
    def __init__(self, app: ASGIApp, identify: Identify) -> None:
        self.app = app
        self.identify = identify

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope[CALLER] = await self.identify(Headers(scope=scope))
        await self.app(scope, receive, send)
