"""The API of an instance: what its routes work with, and the server that answers while the instance lives."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial

from noonday import targets
from noonday.api.app import ApiServices, create_app
from noonday.api.door.guard import Access
from noonday.control.keys import Keys
from noonday.control.sessions import Sessions
from noonday.control.system import LocalStatus
from noonday.domain.job import Job
from noonday.domain.rates import Rate
from noonday.domain.signatures import Secret, secrets_of
from noonday.instance import access, policies
from noonday.instance.parts import Parts
from noonday.instance.server import Server
from noonday.settings import Settings
from noonday.targets.signing import check_callback_token
from noonday.web import routes as pages

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
    keys = Keys(parts.db, parts.clock)
    services = ApiServices(
        db=parts.db,
        clock=parts.clock,
        status=status,
        check_token=partial(check_callback_token, parts.secret),
        vet=vet,
        vet_url=partial(targets.check_url, policy=policies.networks(settings)),
        service_urls=settings.services,
        replace_existing=settings.job_replace_existing,
        defaults=policies.defaults(settings),
        access=Access(
            host=settings.host, allowed_hosts=settings.allowed_hosts, origins=settings.frontend_urls
        ),
        identify=access.identifier(settings, keys, Sessions(parts.db, parts.clock), parts.clock),
        keys=keys,
        settings=settings.sources,
        trigger_rate=Rate(calls=settings.trigger_rate) if settings.trigger_rate else None,
        answers_kept=settings.idempotency_ttl,
        webhook_secrets=_webhook_secrets(settings),
        pubsub_enabled=parts.redis is not None,
        v2_enabled=settings.v2_enabled,
        leader_key=settings.leader_key,
        breaker=parts.engine.config.breaker,
        telemetry=parts.telemetry,
        events_kept=settings.events_keep,
        scrape=scrape,
    )
    app = create_app(services)
    pages.install(app)
    server = Server(app)
    async with asyncio.TaskGroup() as group:
        group.create_task(server.serve([sock]), name="api")
        await server.ready.wait()
        await access.tell(settings, keys)
        yield
        app.state.services.close()
        server.should_exit = True


def _webhook_secrets(settings: Settings) -> tuple[Secret, ...]:
    given = settings.webhook_secrets
    return () if given is None else secrets_of(given.get_secret_value())
