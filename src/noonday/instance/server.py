"""The HTTP server inside the instance's own loop: it binds before anything runs, and leaves signals alone."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import uvicorn
from fastapi import FastAPI

from noonday.domain.errors import Invalid, Problem

_BACKLOG = 2048


def bind(host: str, port: int, setting: str = "PORT") -> socket.socket:
    """Port 0 takes a free one. Bound early, so that a taken port is told before anything starts."""
    sock: socket.socket | None = None
    try:
        plain = host.strip("[]")
        found = socket.getaddrinfo(plain, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, proto, _, address = found[0]
        sock = socket.socket(family, kind, proto)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
    except OSError as exc:
        if sock is not None:
            sock.close()
        name, value = (setting, port) if exc.errno in (errno.EADDRINUSE, errno.EACCES) else ("HOST", host)
        raise Invalid(Problem(name, f"cannot listen on {value!r}: {exc.strerror or exc}")) from exc
    sock.setblocking(False)
    return sock


def url_of(sock: socket.socket, host: str) -> str:
    port = sock.getsockname()[1]
    plain = host.strip("[]")
    return f"http://[{plain}]:{port}" if ":" in plain else f"http://{plain}:{port}"


class Server(uvicorn.Server):
    """`ready` is set once it accepts; `should_exit` ends it."""

    def __init__(self, app: FastAPI, grace: timedelta = timedelta(seconds=5)) -> None:
        config = uvicorn.Config(
            app,
            lifespan="off",
            log_config=None,
            access_log=False,
            log_level="warning",
            server_header=False,
            backlog=_BACKLOG,
            timeout_graceful_shutdown=int(grace.total_seconds()),
        )
        super().__init__(config)
        self.ready = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The instance listens to signals itself: it has more to bring to an end than connections."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()
