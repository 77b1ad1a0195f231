"""An instance driven by hand, on a fresh database: once SQLite, once PostgreSQL."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from noonday.testing import ManualInstance


@pytest.fixture
async def scheduler(db_url: str) -> AsyncIterator[ManualInstance]:
    async with ManualInstance(db_url) as made:
        yield made
