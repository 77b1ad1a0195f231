"""Requests as bytes, straight to the application: no client repairs them on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from starlette.types import ASGIApp, Message

HOST = (b"host", b"localhost:8060")
JSON = (b"content-type", b"application/json")


@dataclass(slots=True)
class Answer:
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def media(self) -> bytes:
        return dict(self.headers).get(b"content-type", b"")

    def json(self) -> Any:
        return json.loads(self.body)


async def ask(
    app: ASGIApp,
    method: str,
    target: str,
    body: bytes = b"",
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> Answer:
    """`target` is ASCII, as in the first line of a request. What the application raises, it has answered."""
    path, _, query = target.partition("?")
    sent = [body]
    found = Answer()

    async def receive() -> Message:
        return {"type": "http.request", "body": sent.pop()} if sent else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            found.status, found.headers = message["status"], list(message["headers"])
        else:
            found.body += message.get("body", b"")

    given = [(name.lower(), value) for name, value in headers]
    if b"host" not in dict(given):
        given.append(HOST)
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": given,
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 8060),
    }
    try:
        await app(scope, receive, send)
    except Exception:
        if not found.status:
            raise
    return found
