"""A TCP proxy that can be told to misbehave: to cut, to hold, to refuse, to lose an answer."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit, urlunsplit

T = TypeVar("T")
_CHUNK = 1 << 16
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends RST, as when the peer's machine is gone


class Proxy:
    """Runs in a thread of its own; every verb has taken effect when it returns.

    with Proxy.to(server.url) as proxy:
        db = Database(proxy.url)
        proxy.cut()
    """

    def __init__(self, host: str, port: int, url: str = "") -> None:
        self._server = (host, port)
        self._given = url
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._links: set[_Link] = set()
        self._lock = threading.Lock()
        self._flows = {"up": asyncio.Event(), "down": asyncio.Event()}
        self._refusing = False
        self._trap: _Trap | None = None
        self.accepted = 0  # connections so far
        self.port = 0

    @classmethod
    def to(cls, url: str) -> Proxy:
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        return cls(parts.hostname, parts.port, url)

    @property
    def url(self) -> str:
        """The server's URL with the proxy's address in it."""
        return self.behind(self._given)

    def behind(self, url: str) -> str:
        parts = urlsplit(url)
        user, at, _ = parts.netloc.rpartition("@")
        return urlunsplit(parts._replace(netloc=f"{user}{at}127.0.0.1:{self.port}"))

    def __enter__(self) -> Self:
        self._thread.start()
        self._do(self._open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, stack: TracebackType | None
    ) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def cut(self) -> int:
        """Reset every open connection; new ones pass. Returns how many there were."""
        return self._do(self._cut())

    def refuse(self) -> None:
        """Reset every open connection and each new one, until `resume`."""
        self._refusing = True
        self.cut()

    def hold(self, *, up: bool = True, down: bool = True) -> None:
        """Bytes wait here, towards the server (`up`), towards the client (`down`), until `resume`."""
        self._do(self._hold(up, down))

    def resume(self) -> None:
        """All is well again; what was held flows on."""
        self._refusing = False
        self._do(self._flow())

    def trap(self, marker: bytes, *, answered: bool, after: bytes = b"") -> threading.Event:
        """Cut the one connection on which the client next sends `marker`; the event is set when it is done.

        With `answered` the server gets it and has answered, and the answer is lost. Without, it never
        arrives. Where `after` is given the client must have sent that before, on the same connection.
        """
        made = _Trap(marker, answered, after)
        self._trap = made
        return made.sprung

    @property
    def open(self) -> int:
        with self._lock:
            return len(self._links)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(20)

    async def _open(self) -> None:
        await self._flow()
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        self._listener.close()
        await self._cut()
        tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _cut(self) -> int:
        with self._lock:
            links = list(self._links)
        for link in links:
            link.reset()
        return len(links)

    async def _hold(self, up: bool, down: bool) -> None:
        for name, held in (("up", up), ("down", down)):
            if held:
                self._flows[name].clear()

    async def _flow(self) -> None:
        for flow in self._flows.values():
            flow.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._refusing:
            _reset(writer)
            return
        try:
            there = await asyncio.open_connection(*self._server)
        except OSError:
            _reset(writer)
            return
        link = _Link((reader, writer), there)
        with self._lock:
            self._links.add(link)
        try:
            if self._refusing:  # told while the connection was being made
                link.reset()
            await asyncio.gather(
                self._pump(reader, there[1], "up", lambda data: self._look(link, data)),
                self._pump(there[0], writer, "down", lambda _: not link.deaf),
            )
        except (OSError, asyncio.CancelledError):  # cancelled when the proxy is closed
            pass
        finally:
            link.reset()
            with self._lock:
                self._links.discard(link)

    def _look(self, link: _Link, data: bytes) -> bool:
        """May these bytes go on to the server?"""
        trap = self._trap
        if trap is None:
            return True
        if trap.after in data:
            trap.armed.add(link)
        if trap.marker not in data or link not in trap.armed:
            return True
        self._trap = None
        link.trapped = trap
        if not trap.answered:
            link.reset()
            return False
        link.deaf = True  # the answer ends here, and with it the connection
        return True

    async def _pump(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        way: str,
        passes: Callable[[bytes], bool],
    ) -> None:
        while data := await source.read(_CHUNK):
            await self._flows[way].wait()
            if not passes(data):
                raise ConnectionResetError
            sink.write(data)
            await sink.drain()
        if sink.can_write_eof():
            sink.write_eof()


class _Trap:
    def __init__(self, marker: bytes, answered: bool, after: bytes) -> None:
        self.marker = marker
        self.answered = answered
        self.after = after
        self.armed: set[_Link] = set()
        self.sprung = threading.Event()


class _Link:
    """One connection through the proxy, both its halves."""

    def __init__(
        self,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        server: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self._writers = (client[1], server[1])
        self.deaf = False
        self.trapped: _Trap | None = None

    def reset(self) -> None:
        for writer in self._writers:
            _reset(writer)
        if self.trapped is not None:
            self.trapped.sprung.set()


def _reset(writer: asyncio.StreamWriter) -> None:
    sock: socket.socket | None = writer.get_extra_info("socket")
    with suppress(OSError):
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()
