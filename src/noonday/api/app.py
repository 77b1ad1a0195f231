"""The HTTP application: the guard at the door, the routes, and one way of saying no."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from noonday.api import problems
from noonday.api.answers import Route
from noonday.api.callers import api_routes, checked
from noonday.api.door.cors import Cors
from noonday.api.door.form_tokens import FormTokens
from noonday.api.door.guard import Guard
from noonday.api.door.identity import Identity
from noonday.api.door.rates import Rates
from noonday.api.door.replays import Replays
from noonday.api.door.request_ids import RequestIds
from noonday.api.door.safe_headers import SafeHeaders
from noonday.api.routes import (
    actions,
    admin,
    audit,
    breakers,
    bulk,
    callbacks,
    events,
    executions,
    health,
    jobs,
    keys,
    rebalance,
    reference,
    registry,
    scheduler,
    schedules,
    statistics,
    timeline,
    triggers,
    v1_jobs,
    v1_scheduler,
    webhooks,
)
from noonday.api.routes import (
    services as service_routes,
)
from noonday.api.services import ApiServices, Services

__all__ = ["ApiServices", "create_app"]

_ROUTES = (
    jobs,
    actions,
    bulk,
    executions,
    callbacks,
    schedules,
    scheduler,
    rebalance,
    statistics,
    timeline,
    breakers,
    webhooks,
    triggers,
    service_routes,
    keys,
    audit,
    events,
    v1_jobs,
    v1_scheduler,
    registry,
    admin,
    health,
    reference,
)
_WORTH_PACKING = 1000  # bytes


class Api(FastAPI):
    _described: dict[str, Any] | None = None

    def build_middleware_stack(self) -> ASGIApp:
        """Around everything, so that the answer to a defect has them too: a name, leave for web pages, and
        what browsers are told."""
        services: Services = self.state.services
        inner = SafeHeaders(super().build_middleware_stack())
        return RequestIds(Cors(inner, services.origins), services.clock)

    def openapi(self) -> dict[str, Any]:
        if self._described is None:
            from noonday.api.openapi import described  # noqa: PLC0415 - few ever ask for the document

            for route in api_routes(self.routes):
                if isinstance(route, Route):
                    route.describe()
            self._described = described(super().openapi(), self.routes)
        return self._described


def create_app(services: ApiServices) -> FastAPI:
    app = Api(
        title="Noonday",
        summary="A job scheduler that fires on time, loses nothing and says why.",
        version=version("noonday"),
        docs_url=None,  # the default pages load scripts from other hosts
        redoc_url=None,
        openapi_url=None,  # routes/reference.py
    )
    app.state.services = made = Services(services)
    # The last one added is asked first.
    app.add_middleware(Replays, answers=made.answers)
    app.add_middleware(Rates, rate=services.trigger_rate, clock=services.clock)
    app.add_middleware(FormTokens)
    app.add_middleware(Identity, identify=made.guesses)
    app.add_middleware(Guard, access=services.access)
    app.add_middleware(GZipMiddleware, minimum_size=_WORTH_PACKING, compresslevel=5)
    problems.install(app)
    app.router.routes.extend(_routes())
    return app


@lru_cache
def _routes() -> Sequence[BaseRoute]:
    """As their files have made them: a router that included them would make each of them once more."""
    found = tuple(route for group in _ROUTES for route in group.router.routes)
    checked(found)
    return found
