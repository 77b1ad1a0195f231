"""The API over a real store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from noonday.api.services import ApiServices
from noonday.control.system import LocalStatus
from noonday.store.database import Database
from tests.api.caller import Api, StillClock, check_token, client_of
from tests.factories import NOON


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture
def services(db: Database, clock: StillClock) -> ApiServices:
    status = LocalStatus(instance_id="instance-1", started_at=NOON - timedelta(minutes=1), slots=10)
    return ApiServices(db=db, clock=clock, status=lambda: status, check_token=check_token)


@pytest.fixture
async def api(services: ApiServices, db: Database, clock: StillClock) -> AsyncIterator[Api]:
    async with client_of(services) as client:
        yield Api(client, db, clock)


@pytest.fixture
async def sqlite_api(sqlite_db: Database, clock: StillClock) -> AsyncIterator[Api]:
    """Where the database makes no difference."""
    status = LocalStatus(instance_id="instance-1", started_at=NOON)
    services = ApiServices(db=sqlite_db, clock=clock, status=lambda: status, check_token=check_token)
    async with client_of(services) as client:
        yield Api(client, sqlite_db, clock)
