"""A name for each request, the caller's own or made here: in its answer, in problems and in log lines."""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from structlog.contextvars import bound_contextvars

from noonday.clock import Clock
from noonday.ids import new_id

__all__ = ["HEADER", "RequestIds"]

HEADER: Final = "X-Request-ID"
_PLAIN = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")  # anything else might pretend to be something in a log


class RequestIds:
    def __init__(self, app: ASGIApp, clock: Clock) -> None:
        self.app = app
        self.clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if _PLAIN.fullmatch(given) else new_id(self.clock.now())

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        with bound_contextvars(request_id=name):
            await self.app(scope, receive, named)
