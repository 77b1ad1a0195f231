"""The API of an instance: what its routes work with, and the server that answers while the instance lives."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from noonday.api.app import ApiServices, create_app
from noonday.api.door.guard import Access
from noonday.control.system import LocalStatus
from noonday.domain.job import Job
from noonday.instance import policies
from noonday.instance.parts import Parts
from noonday.instance.server import Server
from noonday.settings import Settings
from noonday.targets.signing import check_callback_token

__all__ = ["opened"]


@asynccontextmanager
async def opened(
    settings: Settings,
    parts: Parts,
    sock: socket.socket,
    *,
    status: Callable[[], LocalStatus],
    vet: Callable[[Job], None],
    scrape: Callable[[], Awaitable[bytes]],
) -> AsyncIterator[None]:
    """Answers requests until the block is left, those that have begun included."""
    services = ApiServices(
        db=parts.db,
        clock=parts.clock,
        status=status,
        check_token=partial(check_callback_token, parts.secret),
        vet=vet,
        defaults=policies.defaults(settings),
        access=Access(host=settings.host, allowed_hosts=settings.allowed_hosts),
        v2_enabled=settings.v2_enabled,
        leader_key=settings.leader_key,
        breaker=parts.engine.config.breaker,
        telemetry=parts.metrics,
        scrape=scrape,
    )
    server = Server(create_app(services))
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve([sock]), name="api")
        await server.ready.wait()
        yield
        server.should_exit = True
