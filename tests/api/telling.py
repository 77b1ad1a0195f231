"""The events of a small API: what is told, by whom it is heard, and when a gap is over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import FastAPI

from noonday.api import problems
from noonday.api.door.identity import Identity
from noonday.api.events import Hub
from noonday.api.routes import events as routes
from noonday.api.services import ApiServices, Services
from noonday.control.system import LocalStatus
from noonday.domain.job import Job
from noonday.store import events
from noonday.store.database import Database
from noonday.store.events import News
from tests.api.caller import StillClock
from tests.api.listener import PATIENCE, Heard
from tests.factories import NOON


def small_app(services: ApiServices) -> FastAPI:
    """The one route and who may ask it: the whole takes long to make."""
    app = FastAPI()
    app.state.services = Services(services)
    app.add_middleware(Identity, identify=app.state.services.guesses)
    problems.install(app)
    app.include_router(routes.router)
    return app


def services_on(db: Database, clock: StillClock) -> ApiServices:
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    return ApiServices(db=db, clock=clock, status=lambda: status)


def news(kind: str = "execution.started", job: Job | None = None, **payload: Any) -> News:
    return News(at=NOON, kind=kind, job_id=None if job is None else job.id, payload=payload)


async def tell(db: Database, *told: News) -> None:
    await db.write(lambda conn: events.append(conn, told))


async def told(db: Database, count: int) -> None:
    await tell(db, *(news(n=n) for n in range(1, count + 1)))


def hub_of(app: FastAPI) -> Hub:
    found: Hub = app.state.services.events
    return found


def kinds(heard: list[Heard]) -> list[str]:
    return [one.event for one in heard]


@contextmanager
def constant(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def waits(app: FastAPI) -> bool:
    """For a number that may still be committed?"""
    reader = hub_of(app)._reader
    return reader is not None and reader.tail.waiting


async def past_a_gap(app: FastAPI, clock: StillClock) -> None:
    await until(lambda: waits(app))
    clock.advance(seconds=2)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.01)
