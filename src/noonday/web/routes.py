"""All pages, put before an application that has the API already."""

from __future__ import annotations

from fastapi import FastAPI

from noonday.api.callers import checked
from noonday.web import assets, refusals
from noonday.web.views import (
    audit,
    breakers,
    bulk,
    calendar,
    door,
    job,
    job_actions,
    job_form,
    jobs,
    load,
    overview,
    run,
    runs,
    settings,
    timeline,
    triggers,
    workers,
)

__all__ = ["install"]

_VIEWS = (
    audit,
    breakers,
    bulk,
    calendar,
    door,
    job_form,
    job,
    job_actions,
    jobs,
    load,
    overview,
    run,
    runs,
    settings,
    timeline,
    triggers,
    workers,
)


def install(app: FastAPI) -> None:
    refusals.install(app)
    app.include_router(assets.router)
    for view in _VIEWS:
        app.include_router(view.router)
    checked(app.routes)
