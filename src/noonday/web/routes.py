"""All pages, put before an application that has the API already."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from fastapi import FastAPI
from starlette.routing import BaseRoute

from noonday.api.callers import checked
from noonday.web import assets, refusals
from noonday.web.views import (
    audit,
    breakers,
    bulk,
    calendar,
    door,
    elsewhere,
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
    elsewhere,
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
    app.router.routes.extend(_routes())


@lru_cache
def _routes() -> Sequence[BaseRoute]:
    """As their files have made them: a router that included them would make each of them once more."""
    found = tuple(route for group in (assets, *_VIEWS) for route in group.router.routes)
    checked(found)
    return found
