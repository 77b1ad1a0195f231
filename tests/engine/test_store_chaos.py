"""The store fails again and again, before and after the commit: nothing is lost, nothing is doubled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from itertools import count
from typing import TypeVar

import pytest
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from noonday.clock import SystemClock
from noonday.control.jobs import Jobs
from noonday.domain.errors import Unavailable
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job, JobId
from noonday.domain.schedule import Immediate, Timing
from noonday.domain.target import PythonTarget
from noonday.engine.engine import EngineConfig, Role
from noonday.ids import new_id
from noonday.instance.parts import Parts, assembled
from noonday.store import history
from noonday.store.database import CommitUnknown, Database
from noonday.targets.config import TargetsConfig
from noonday.targets.tasks import TaskRegistry, current, make_task
from noonday.testing import ManualInstance

T = TypeVar("T")
CLOCK = SystemClock()


@asynccontextmanager
async def engine_running(url: str, tasks: TaskRegistry) -> AsyncIterator[Parts]:
    """The real loops on the real clock, with a short lease."""
    config = EngineConfig(
        instance_id="chaos",
        roles=frozenset({Role.SCHEDULER, Role.WORKER}),
        lease=timedelta(seconds=1.5),
        slots=8,
    )
    async with (
        assembled(
            database_url=url,
            clock=CLOCK,
            config=config,
            targets=lambda secret: TargetsConfig(signing_secret=secret, tasks=tasks),
            stop=asyncio.Event(),
        ) as parts,
        asyncio.TaskGroup() as group,
    ):
        actors = [group.create_task(actor.run()) for actor in parts.actors]
        yield parts
        for actor in actors:
            actor.cancel()


async def add(db: Database, name: str) -> Job:
    now = CLOCK.now()
    job = Job(
        id=JobId(new_id(now)),
        name=name,
        timing=Timing(schedule=Immediate(), anchor_at=now),
        target=PythonTarget(task="work"),
        created_at=now,
        updated_at=now,
    )
    return await Jobs(db, CLOCK).create(job)


async def all_ended(db: Database, number: int) -> list[Execution]:
    async with asyncio.timeout(60):
        while True:
            page = await db.read(lambda conn: history.page(conn, limit=1000))
            if len(page.items) == number and not any(run.state.open for run in page.items):
                return list(page.items)
            await asyncio.sleep(0.05)


async def test_it_loses_and_doubles_nothing_in_a_store_that_keeps_failing(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: Counter[tuple[str, int]] = Counter()

    async def work() -> None:
        ran[current().execution_id, current().attempt] += 1
        await asyncio.sleep(0.01)

    tasks = TaskRegistry()
    tasks.add(make_task(work))
    async with engine_running(db_url, tasks) as parts:
        for number in range(60):
            await add(parts.db, f"job-{number}")
        write, calls = parts.db.write, count(1)

        async def failing(done: Callable[[Connection], T], **how: bool) -> T:
            turn = next(calls)
            if turn % 3 == 0:
                raise Unavailable("the database is away")
            result = await write(done, **how)
            if turn % 7 == 0:
                raise CommitUnknown
            return result

        monkeypatch.setattr(parts.db, "write", failing)
        runs = await all_ended(parts.db, 60)
        monkeypatch.undo()
    assert {run.state for run in runs} == {ExecutionState.COMPLETED}
    assert set(ran.values()) == {1}, "an attempt ran twice"
    for run in runs:
        assert run.attempt >= run.losses + 1  # claims whose answer was lost are counted too
        assert ran[run.id, run.attempt] == 1


async def test_it_starts_nothing_while_the_store_is_away_and_goes_on_when_it_is_back(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Promise 9, the half of it that is the store's."""
    started: list[str] = []

    async def work() -> None:
        started.append(current().job_name)

    tasks = TaskRegistry()
    tasks.add(make_task(work))
    async with engine_running(db_url, tasks) as parts:
        await add(parts.db, "first")
        await all_ended(parts.db, 1)

        tried = asyncio.Event()

        async def away(done: Callable[[Connection], T], **how: bool) -> T:
            tried.set()
            raise OperationalError("BEGIN", {}, Exception("server closed the connection"))

        monkeypatch.setattr(parts.db, "write", away)
        with pytest.raises(OperationalError):
            await add(parts.db, "second")
        tried.clear()
        for actor in parts.engine.actors:
            actor.wake.set()
        async with asyncio.timeout(20):
            await tried.wait()
        monkeypatch.undo()
        await add(parts.db, "third")
        runs = await all_ended(parts.db, 2)
    assert started == ["first", "third"]
    assert {run.state for run in runs} == {ExecutionState.COMPLETED}


async def test_it_finds_again_what_was_claimed_when_the_answer_was_lost(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows are leased to somebody who does not know it: he finds out as soon as the store answers."""

    @scheduler.task
    async def work() -> None:
        pass

    await scheduler.add("job", Immediate(), "work")
    await scheduler.engine.planner.run_once()
    write = scheduler.db.write

    async def lost(done: Callable[[Connection], T], **how: bool) -> T:
        await write(done, **how)
        raise CommitUnknown

    monkeypatch.setattr(scheduler.db, "write", lost)
    with pytest.raises(CommitUnknown):
        await scheduler.engine.worker.run_once()
    monkeypatch.undo()
    [run] = await scheduler.history("job")
    assert run.state is ExecutionState.RUNNING
    await scheduler.tick(seconds=1)
    [run] = await scheduler.history("job")
    assert (run.state, run.losses, run.attempt) == (ExecutionState.COMPLETED, 0, 2)
