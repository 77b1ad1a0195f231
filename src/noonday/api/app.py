"""The HTTP application: the guard at the door, the routes, and one way of saying no."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from fastapi import FastAPI

from noonday.api import problems
from noonday.api.callers import checked
from noonday.api.door.guard import Guard
from noonday.api.door.identity import Identity
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
    reference,
    registry,
    scheduler,
    schedules,
    triggers,
    v1_jobs,
    v1_scheduler,
    webhooks,
)
from noonday.api.routes import (
    services as service_routes,
)
from noonday.api.services import ApiServices, Services
from noonday.api.shapes import Problem

__all__ = ["ApiServices", "create_app"]

_ROUTES = (
    bulk,
    jobs,
    actions,
    executions,
    callbacks,
    schedules,
    scheduler,
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
_PROBLEM = {"content": {problems.MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}}
_REFUSALS = {
    400: "the body is not JSON",
    403: "a page from another origin",
    413: "the body is too large",
    415: "the body is of another kind than JSON",
    421: "an unknown name in the Host header",
    422: "a value is wrong; `errors` names each",
    503: "the database, or something else needed, is down or switched off",
}


class Api(FastAPI):
    def openapi(self) -> dict[str, Any]:
        if not self.openapi_schema:
            made = super().openapi()
            template = "#/components/schemas/{model}"
            shape = Problem.model_json_schema(ref_template=template)
            made["components"]["schemas"] |= shape.pop("$defs", {}) | {"Problem": shape}
        return super().openapi()


def create_app(services: ApiServices) -> FastAPI:
    app = Api(
        title="Noonday",
        summary="A job scheduler that fires on time, loses nothing and says why.",
        version=version("noonday"),
        docs_url=None,  # the default pages load scripts from other hosts
        redoc_url=None,
        responses={status: {"description": words, **_PROBLEM} for status, words in _REFUSALS.items()},
    )
    app.state.services = Services(services)
    # The last one added is asked first.
    app.add_middleware(Identity, identify=services.identify)
    app.add_middleware(Guard, access=services.access)
    problems.install(app)
    for routes in _ROUTES:
        app.include_router(routes.router)
    checked(app.routes)
    return app
