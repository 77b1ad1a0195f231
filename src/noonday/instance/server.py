"""The HTTP server inside the instance's own loop, which leaves signals alone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import uvicorn
from fastapi import FastAPI

_BACKLOG = 2048


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
