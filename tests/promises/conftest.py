"""A scheduler on each database, and a task that keeps a diary."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from noonday.testing import ManualInstance
from tests.promises.diary import Diary


@pytest.fixture
async def scheduler(db_url: str) -> AsyncIterator[ManualInstance]:
    async with ManualInstance(db_url, lease=timedelta(seconds=30)) as made:
        yield made


@pytest.fixture
def diary(scheduler: ManualInstance) -> Diary:
    made = Diary(scheduler)

    @scheduler.task
    async def work() -> None:
        await made.work()

    return made
