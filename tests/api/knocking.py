"""Asking a route for its status alone: a stream that never ends is left as soon as it begins to answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from starlette.types import ASGIApp, Message

from tests.api.scopes import scope_of

PATIENCE = 20


async def knock(app: ASGIApp, method: str, path: str, headers: Mapping[str, str], body: Any = None) -> int:
    sent = [] if body is None else [json.dumps(body).encode()]
    status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    ended = asyncio.Event()

    async def receive() -> Message:
        if sent:
            return {"type": "http.request", "body": sent.pop(), "more_body": False}
        if body is None and not ended.is_set():
            ended.set()
            return {"type": "http.request", "body": b"", "more_body": False}
        await status
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start" and not status.done():
            status.set_result(message["status"])

    given = {
        "host": "localhost",
        **({"content-type": "application/json"} if body is not None else {}),
        **headers,
    }
    encoded = [(name.lower().encode(), value.encode()) for name, value in given.items()]
    scope = scope_of(method, quote(path), encoded)
    async with asyncio.timeout(PATIENCE), asyncio.TaskGroup() as group:
        answering = group.create_task(_answer(app, scope, receive, send, status))
        found = await status
        answering.cancel()
    return found


async def _answer(app: ASGIApp, scope: Any, receive: Any, send: Any, status: asyncio.Future[int]) -> None:
    try:
        await app(scope, receive, send)
    finally:
        if not status.done():
            status.set_exception(AssertionError(f"{scope['method']} {scope['path']} was not answered"))
