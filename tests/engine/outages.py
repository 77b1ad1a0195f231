"""An engine in full motion on a PostgreSQL that goes away: what tests of outages share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from noonday.clock import SyncedClock
from noonday.control.jobs import Jobs
from noonday.domain.execution import Attempt, Execution, ExecutionState
from noonday.domain.job import Job, JobId
from noonday.domain.schedule import Immediate, Interval, IntervalUnit, Schedule, Timing
from noonday.domain.target import PythonTarget
from noonday.engine.engine import EngineConfig, Role
from noonday.ids import new_id
from noonday.instance.parts import ClusterConfig, Parts, assembled
from noonday.store import history
from noonday.store.engines import StoreOptions
from noonday.targets.config import TargetsConfig
from noonday.targets.tasks import TaskRegistry, make_task

EVERY_SECOND = Interval(count=1, unit=IntervalUnit.SECONDS)
PATIENCE = 40.0


class Life:
    """One engine with its loops running, and short words for what tests do with it."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self.db, self.clock = parts.db, parts.clock

    async def add(self, name: str, task: str, schedule: Schedule | None = None) -> Job:
        now = self.clock.now()
        job = Job(
            id=JobId(new_id(now)),
            name=name,
            timing=Timing(schedule=schedule or Immediate(), anchor_at=now),
            target=PythonTarget(task=task),
            created_at=now,
            updated_at=now,
        )
        return await Jobs(self.db, self.clock).create(job)

    async def rows(self, job: Job) -> list[Execution]:
        page = await self.db.read(lambda conn: history.page(conn, job.id, limit=1000))
        return sorted(page.items, key=lambda run: run.scheduled_for)

    async def attempts(self, run: Execution) -> list[Attempt]:
        return await self.db.read(lambda conn: history.attempts(conn, run.id))

    async def ended(self, job: Job) -> Execution:
        """The one run of a job, once it has ended."""
        async with asyncio.timeout(PATIENCE):
            while True:
                rows = await self.rows(job)
                if rows and not rows[0].state.open:
                    (run,) = rows
                    return run
                await asyncio.sleep(0.05)


@asynccontextmanager
async def living(
    url: str,
    *functions: Callable[..., Any],
    name: str = "outage",
    lease: float = 20,
    leader_ttl: float = 30,
    pooled: bool = False,
) -> AsyncIterator[Life]:
    tasks = TaskRegistry()
    for function in functions:
        tasks.add(make_task(function))
    config = EngineConfig(
        instance_id=name,
        roles=frozenset({Role.SCHEDULER, Role.WORKER}),
        lease=timedelta(seconds=lease),
        slots=8,
    )
    async with (
        assembled(
            database_url=url,
            clock=SyncedClock(),
            config=config,
            targets=lambda secret: TargetsConfig(signing_secret=secret, tasks=tasks),
            stop=asyncio.Event(),
            cluster=ClusterConfig(
                leader_ttl=timedelta(seconds=leader_ttl), store=StoreOptions(transaction_pooling=pooled)
            ),
        ) as parts,
        asyncio.TaskGroup() as group,
    ):
        await parts.engine.begin()
        actors = [group.create_task(actor.run()) for actor in parts.actors]
        yield Life(parts)
        for actor in actors:
            actor.cancel()


async def true(condition: Callable[[], bool], patience: float = PATIENCE) -> None:
    async with asyncio.timeout(patience):
        while not condition():
            await asyncio.sleep(0.02)


def accounted(rows: Sequence[Execution], step: timedelta) -> list[datetime]:
    """Every due time that the rows tell of, those of lapses included; raises where one is told twice."""
    found: list[datetime] = []
    for row in rows:
        count = row.skipped_count if row.state is ExecutionState.SKIPPED else 1
        found += [row.scheduled_for + step * n for n in range(count)]
        if row.through_at is not None:
            assert found[-1] == row.through_at
    assert len(set(found)) == len(found), "a due time has two rows"
    return sorted(found)
