"""A claim that took longer than its lease: the process stood still, or the database did."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import pytest
from sqlalchemy import Connection

from noonday.domain.execution import ExecutionState
from noonday.domain.schedule import Immediate
from noonday.testing import ManualInstance

T = TypeVar("T")


async def test_it_starts_nothing_on_a_lease_that_died_before_the_claim_came_back(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    began: list[float] = []

    @scheduler.task
    async def work() -> None:
        began.append(scheduler.clock.monotonic())

    await scheduler.add("job", Immediate(), "work")
    await scheduler.engine.planner.run_once()
    write = scheduler.db.write

    async def standing_still(done: Callable[[Connection], T], **how: bool) -> T:
        scheduler.clock.advance(seconds=31)  # the lease is 30 s, counted from when it was asked for
        return await write(done, **how)

    monkeypatch.setattr(scheduler.db, "write", standing_still)
    await scheduler.engine.worker.run_once()
    monkeypatch.undo()
    await scheduler.run_once()
    [run] = await scheduler.history("job")
    assert began == [31], "the first claim must not be run, the second must"
    assert (run.state, run.attempt, run.losses) == (ExecutionState.COMPLETED, 2, 1)
    assert scheduler.engine.counters.lease_losses == 1
