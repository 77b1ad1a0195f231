"""Every page there is, found by asking the application, with something to show on each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.routing import APIRoute

from noonday.api import problems
from noonday.api.callers import api_routes
from noonday.web import routes
from tests.web.live import LiveSite

_NO_PAGES: Final = ("/ui/static/", "/ui/login", "/admin/", "/ui/events")
JOB: Final = "import-orders"  # with runs of every kind, changes and a history
_EXAMPLES: Final[Mapping[str, str]] = {"{job}": JOB, "{name}": JOB}


def paths() -> list[str]:
    """As the routes are written, parts of other pages and answers for programs left out."""
    app = FastAPI(openapi_url=None)
    problems.install(app)
    routes.install(app)
    found = [route for route in api_routes(app.routes) if "GET" in (route.methods or ())]
    return sorted({route.path for route in found if _is_page(route.path) and not _asks_for_more(route)})


def _is_page(path: str) -> bool:
    return not path.startswith(_NO_PAGES) and "." not in path and path.count("{") <= 1


def _asks_for_more(route: APIRoute) -> bool:
    """A page that one comes to only from another one, which says what it is about."""
    return any(one.field_info.is_required() for one in route.dependant.query_params)


def address_of(path: str, site: LiveSite) -> str:
    for name, value in _EXAMPLES.items():
        path = path.replace(name, quote(value))
    if "{execution}" in path:
        path = path.replace("{execution}", _failed(site))
    return path


def _failed(site: LiveSite) -> str:
    """A run that shows most: it failed after several attempts."""
    found = site.ask("GET", "/api/v2/executions?status=failed&limit=1")["executions"]
    return str(found[0]["id"])
