"""A client of `/api/events` without a socket: it hears each event as it is sent, and can vanish."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from starlette.types import ASGIApp, Message

PATIENCE = 10.0


@dataclass(frozen=True)
class Heard:
    """One block of the stream; `id` is empty where it had none."""

    id: str = ""
    event: str = ""
    data: Any = None
    retry: str = ""
    comment: bool = False


class Listener:
    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""  # of an answer that is no stream
        self.gone = asyncio.Event()  # the client left
        self.over = asyncio.Event()  # the server ended the answer
        self.held = asyncio.Event()  # while it is not set, the client takes nothing
        self.held.set()
        self._blocks: asyncio.Queue[Heard] = asyncio.Queue()
        self._rest = b""
        self._asked = False
        self._began = asyncio.Event()

    async def began(self) -> None:
        async with asyncio.timeout(PATIENCE):
            await self._began.wait()

    async def block(self) -> Heard:
        async with asyncio.timeout(PATIENCE):
            return await self._blocks.get()

    async def event(self) -> Heard:
        """The next one with data: greetings and signs of life are passed over."""
        while True:
            heard = await self.block()
            if heard.data is not None:
                return heard

    async def events(self, count: int) -> list[Heard]:
        return [await self.event() for _ in range(count)]

    def nothing_waits(self) -> bool:
        return self._blocks.empty()

    async def receive(self) -> Message:
        if not self._asked:
            self._asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.held.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {key.decode(): value.decode() for key, value in message["headers"]}
            return
        self.body += message.get("body", b"")
        self._rest += message.get("body", b"")
        while b"\n\n" in self._rest:
            block, _, self._rest = self._rest.partition(b"\n\n")
            self._blocks.put_nowait(_read(block.decode()))
        if not message.get("more_body", False):
            self.over.set()
        self._began.set()


def _read(block: str) -> Heard:
    fields: dict[str, str] = {}
    for line in block.split("\n"):
        name, _, value = line.partition(":")
        fields[name] = value.removeprefix(" ")
    data = fields.get("data")
    return Heard(
        id=fields.get("id", ""),
        event=fields.get("event", ""),
        data=None if data is None else json.loads(data),
        retry=fields.get("retry", ""),
        comment="" in fields,
    )


@asynccontextmanager
async def listening(
    app: ASGIApp, headers: Mapping[str, str] | None = None, **query: str
) -> AsyncIterator[Listener]:
    """Leaving the block is vanishing; the server has to notice by itself, and then nothing may be left."""
    given = {"host": "localhost:8060", "accept-encoding": "gzip", **(headers or {})}
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": "/api/events",
        "raw_path": b"/api/events",
        "root_path": "",
        "query_string": urlencode(query).encode(),
        "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 8060),
    }
    client = Listener()

    async def answer() -> None:
        await app(scope, client.receive, client.send)

    answering = asyncio.create_task(answer())
    try:
        await client.began()
        yield client
    finally:
        client.gone.set()
        client.held.set()
        async with asyncio.timeout(PATIENCE):
            await answering
