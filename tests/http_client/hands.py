"""What the tests of the HTTP client share: a server that says what it is told to, and somebody who reads."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from yarl import URL

from noonday.http_client import AddrInfo, Opener, Origin, Pool, head_of


class Kept:
    """Reads an answer and keeps it all, or so many bytes."""

    def __init__(self, most: int = 10**9) -> None:
        self.most = most
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self.body = b""
        self.pieces = 0
        self.began = asyncio.Event()

    def begin(self, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, dict(headers)
        self.began.set()

    def add(self, chunk: bytes) -> bool:
        self.pieces += 1
        self.body += chunk
        return len(self.body) <= self.most


class Server:
    """Answers each request with the next of its answers; one that is None closes the connection instead."""

    def __init__(self, answers: Sequence[bytes | None]) -> None:
        self.left = list(answers)
        self.heads: list[bytes] = []
        self.connections = 0
        self.hung_up = asyncio.Event()  # the other side closed a connection
        self.port = 0
        self._serving: set[asyncio.Task[Any]] = set()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        self.connections += 1
        try:
            await self.serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            self.hung_up.set()
        finally:
            writer.close()
            self._serving.discard(task)

    async def left_alone(self) -> None:
        """Until all connections are over."""
        if self._serving:
            await asyncio.wait(self._serving, timeout=10)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            self.heads.append(await reader.readuntil(b"\r\n\r\n"))
            answer = self.left.pop(0)
            if answer is None:
                return
            writer.write(answer)
            if b"until closed" in answer:
                return


@asynccontextmanager
async def listening(server: Server, tls: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    listener = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=tls)
    async with listener:
        server.port = listener.sockets[0].getsockname()[1]
        yield
        await server.left_alone()


@asynccontextmanager
async def serving(*answers: bytes | None, tls: ssl.SSLContext | None = None) -> AsyncIterator[Server]:
    server = Server(answers)
    async with listening(server, tls):
        yield server


def addresses(*hosts: str) -> Any:
    async def resolve(host: str, port: int) -> Sequence[AddrInfo]:
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (one, port)) for one in hosts]

    return resolve


@asynccontextmanager
async def a_pool(
    *,
    per_origin: int = 8,
    keep_alive: float = 30.0,
    patience: float = 10.0,
    hosts: Sequence[str] = ("127.0.0.1",),
) -> AsyncIterator[Pool]:
    pool = Pool(Opener(addresses(*hosts), patience).open, per_origin=per_origin, keep_alive=keep_alive)
    try:
        yield pool
    finally:
        pool.close()


async def ask(
    pool: Pool, server: Server, method: str = "GET", *, tls: bool = False, most: int = 10**9
) -> Kept:
    kept = Kept(most)
    await pool.send(
        Origin(tls, "localhost", server.port),
        head_of(method, URL(f"http://localhost:{server.port}/a?b=1"), {"X-A": "1"}, 0),
        kept,
        repeatable=method == "GET",
        bodiless=method == "HEAD",
    )
    return kept


def answer(body: bytes = b"fine", *headers: str, first: str = "HTTP/1.1 200 OK") -> bytes:
    lines = [first, *headers, f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body
