"""All pages, put before an application that has the API already."""

from __future__ import annotations

from fastapi import FastAPI

from noonday.api.callers import checked
from noonday.web import assets
from noonday.web.views import jobs

__all__ = ["install"]

_VIEWS = (jobs,)


def install(app: FastAPI) -> None:
    app.include_router(assets.router)
    for view in _VIEWS:
        app.include_router(view.router)
    checked(app.routes)
