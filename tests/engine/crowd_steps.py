"""A small crowd on a clock moved by hand: what tests of crowds share."""

from __future__ import annotations

import asyncio
from collections import Counter
from datetime import datetime
from functools import partial

from noonday.domain.execution import ExecutionState
from noonday.store import history
from noonday.testing import ManualInstance

COUNT, BATCH = 40, 5


class Started:
    """What ran, and when; `all` is set when so many have."""

    def __init__(self, scheduler: ManualInstance, wanted: int = COUNT) -> None:
        self.at: list[datetime] = []
        self.all = asyncio.Event()

        @scheduler.task
        async def work() -> None:
            self.at.append(scheduler.clock.now())
            if len(self.at) >= wanted:
                self.all.set()


async def states(scheduler: ManualInstance) -> Counter[ExecutionState]:
    page = await scheduler.db.read(partial(history.page, limit=COUNT))
    return Counter(run.state for run in page.items)
