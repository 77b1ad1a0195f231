"""Every page and form there is, by its route."""

from __future__ import annotations

from functools import lru_cache

from fastapi import FastAPI
from fastapi.routing import APIRoute

from noonday.api import problems
from noonday.api.callers import api_routes
from noonday.web import routes

_NO_PAGES = ("/ui/static/", "/ui/login", "/admin/", "/ui/queues", "/ui/api")


@lru_cache
def all_routes() -> tuple[APIRoute, ...]:
    app = FastAPI(openapi_url=None)
    problems.install(app)
    routes.install(app)
    return tuple(api_routes(app.routes))


def page_routes() -> list[APIRoute]:
    """Those that are read, and are no mere way to another."""
    found = [one for one in all_routes() if "GET" in (one.methods or ())]
    return [one for one in found if one.path != "/ui" and not one.path.startswith(_NO_PAGES)]


def paths() -> list[str]:
    """Those that show HTML."""
    return [route.path for route in page_routes() if not route.path.endswith(".txt")]
