"""Requests as bytes, straight to the application: no client repairs them on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message

from tests.api.scopes import scope_of

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
    """`target` is ASCII, as in the first line of a request."""
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
    try:
        await app(scope_of(method, target, given), receive, send)
    except Exception:  # a defect of any kind is raised again after it was answered
        if found.status != 500:
            raise
    return found
