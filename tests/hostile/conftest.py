"""The API over a real store, where a defect is an answer: a stranger sees no exceptions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
from fastapi import FastAPI
from httpx2 import ASGITransport, AsyncClient

from noonday.api.app import create_app
from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.store.database import Database
from noonday.targets import NetworkPolicy, check_target, check_url
from tests.api.caller import Api, StillClock, check_token
from tests.factories import NOON


def services_of(db: Database, clock: StillClock, policy: NetworkPolicy) -> ApiServices:
    """As an instance puts them together: jobs and services may call where the policy lets them."""
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    return ApiServices(
        db=db,
        clock=clock,
        status=lambda: status,
        check_token=check_token,
        vet=lambda job: check_target(job.target, policy),
        vet_url=partial(check_url, policy=policy),
    )


@asynccontextmanager
async def friend_of(app: FastAPI, db: Database, clock: StillClock) -> AsyncIterator[Api]:
    """The same application by a friendly client."""
    transport = ASGITransport(app=app, raise_app_exceptions=False)
    async with AsyncClient(transport=transport, base_url="http://localhost:8060") as client:
        yield Api(client, db, clock)


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def app(db: Database, clock: StillClock) -> FastAPI:
    return create_app(services_of(db, clock, NetworkPolicy()))


@pytest.fixture
async def api(app: FastAPI, db: Database, clock: StillClock) -> AsyncIterator[Api]:
    async with friend_of(app, db, clock) as made:
        yield made


@pytest.fixture
def sqlite_app(sqlite_db: Database, clock: StillClock) -> FastAPI:
    """Where the database makes no difference."""
    return create_app(services_of(sqlite_db, clock, NetworkPolicy()))


@pytest.fixture
async def sqlite_api(sqlite_app: FastAPI, sqlite_db: Database, clock: StillClock) -> AsyncIterator[Api]:
    async with friend_of(sqlite_app, sqlite_db, clock) as made:
        yield made
