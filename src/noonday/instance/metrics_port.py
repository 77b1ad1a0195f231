"""`/metrics` and `/health/live` on a port of their own: for instances without an API, and closed networks."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import structlog
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

from noonday.api.door.guard import Access, Guard
from noonday.instance.server import Server
from noonday.instance.sockets import url_of
from noonday.settings import Settings
from noonday.telemetry.metrics import CONTENT_TYPE

log = structlog.get_logger(__name__)

Scrape = Callable[[], Awaitable[bytes]]


@asynccontextmanager
async def answering(settings: Settings, sock: socket.socket, scrape: Scrape) -> AsyncIterator[None]:
    """Until the block is left."""
    access = Access(host=settings.host, allowed_hosts=settings.allowed_hosts)
    server = Server(_app(scrape, access))
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve([sock]), name="metrics")
        await server.ready.wait()
        url = url_of(sock, settings.host)
        log.info("metrics are on %s/metrics", url, action="ready", url=url)
        yield
        server.should_exit = True


def _app(scrape: Scrape, access: Access) -> FastAPI:
    app = FastAPI(openapi_url=None)
    app.add_middleware(Guard, access=access)

    @app.get("/metrics")
    async def metrics() -> Response:
        return Response(await scrape(), media_type=CONTENT_TYPE)

    @app.get("/health/live")
    async def live() -> Response:
        return JSONResponse({"status": "alive"})

    return app
