"""Opens connections: to an address that was looked up once, by whichever road answers first."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, NamedTuple

from aiohappyeyeballs import start_connection
from yarl import URL

from noonday.http_client.connection import Connection
from noonday.http_client.errors import NoConnection, NotTrusted

AddrInfo = tuple[Any, Any, int, str, tuple[Any, ...]]
Resolve = Callable[[str, int], Awaitable[Sequence[AddrInfo]]]
MakeSocket = Callable[[AddrInfo], socket.socket]

_HEAD_START: Final = 0.25  # seconds that an address has before the next one is tried beside it (RFC 8305)


class Origin(NamedTuple):
    """Where a call goes: calls to the same one share its connections."""

    tls: bool
    host: str
    port: int

    @classmethod
    def of(cls, url: URL) -> Origin:
        """Raises ValueError for a URL that names no place."""
        if url.raw_host is None or url.port is None:
            raise ValueError("the URL has no host or no port")
        return cls(url.scheme == "https", url.raw_host, url.port)


class Opener:
    def __init__(self, resolve: Resolve, patience: float, make_socket: MakeSocket | None = None) -> None:
        self._resolve = resolve
        self._make_socket = make_socket
        self._patience = patience  # seconds, for the connection and its handshake
        self._trust: ssl.SSLContext | None = None  # known once it was needed

    async def open(self, origin: Origin) -> Connection:
        """Raises NoConnection, or TimeoutError when it takes too long."""
        try:
            found = await self._resolve(origin.host, origin.port)
            async with asyncio.timeout(self._patience):
                return await self._connect(origin, found)
        except ssl.SSLCertVerificationError as exc:
            raise NotTrusted(exc) from exc
        except TimeoutError as exc:
            if exc.errno is None:
                raise
            raise NoConnection(exc) from exc  # it was the network that gave up
        except OSError as exc:
            raise NoConnection(exc) from exc

    async def _connect(self, origin: Origin, found: Sequence[AddrInfo]) -> Connection:
        loop = asyncio.get_running_loop()
        sock = await start_connection(
            list(found),
            happy_eyeballs_delay=_HEAD_START,
            interleave=1,
            socket_factory=self._make_socket,
            loop=loop,
        )
        try:
            _, connection = await loop.create_connection(
                Connection,
                sock=sock,
                ssl=await self._trusting() if origin.tls else None,
                server_hostname=origin.host.rstrip(".") if origin.tls else None,
            )
        except BaseException:
            sock.close()
            raise
        return connection

    async def _trusting(self) -> ssl.SSLContext:
        """Whom the machine trusts: to read it takes dozens of milliseconds, which nobody else waits for."""
        if self._trust is None:
            self._trust = await asyncio.to_thread(_machine_trusts)
        return self._trust


def _machine_trusts() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context
