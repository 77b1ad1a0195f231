"""A worker that takes from a road of our own making."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from noonday.domain.execution import ExecutionId
from noonday.domain.job import Job, Lane
from noonday.engine.engine import Role
from noonday.ports import Parcel, Silence
from noonday.store import executions
from noonday.store.records import forced
from noonday.testing import FlakyRoad
from tests.engine.road_steps import (
    CLOCK,
    Machine,
    machine,
)

WORKER = frozenset({Role.WORKER})
LONG = timedelta(seconds=30)


def a_road() -> FlakyRoad:
    return FlakyRoad(CLOCK, waits=True)


async def pledged(one: Machine, job: Job, ahead: float = 0.0) -> Parcel:
    now = CLOCK.now()
    row = replace(forced(job, now, None, None), available_at=now + timedelta(seconds=ahead))
    await one.db.write(lambda conn: executions.plan(conn, [row], {row.id}))
    return Parcel(job.lane, row.id)


async def put(one: Machine, road: FlakyRoad, job: Job, ahead: float = 0.0) -> ExecutionId:
    """A row that is pledged, and its message at once, however early that is."""
    parcel = await pledged(one, job, ahead)
    await road.queue("leader").put([parcel])
    return parcel.execution_id


@asynccontextmanager
async def by_hand(db_url: str, road: FlakyRoad, **config: Any) -> AsyncIterator[Machine]:
    """Nothing moves by itself but what runs."""
    async with machine(db_url, queue=road.queue, **config) as one:
        one.engine.slots.spawn = asyncio.get_running_loop().create_task
        yield one
        for held in one.engine.leases:
            if held.task is not None:
                held.task.cancel()
                await asyncio.gather(held.task, return_exceptions=True)


@dataclass
class Heard(Silence):
    taken: list[tuple[Lane, int]] = field(default_factory=list)
    again: list[tuple[Lane, int]] = field(default_factory=list)

    def dequeued(self, lane: Lane, count: int) -> None:
        self.taken.append((lane, count))

    def redelivered(self, lane: Lane, count: int) -> None:
        self.again.append((lane, count))
