"""What most attempts never need costs them nothing, and is there for those that do."""

from __future__ import annotations

import asyncio
import gc
import weakref
from datetime import timedelta
from typing import Any

import pytest

from noonday.domain.job import RetryPolicy
from noonday.domain.schedule import Immediate
from noonday.engine.held import NEVER, Held
from noonday.engine.leases import Timers
from noonday.engine.outputs import Outputs
from noonday.engine.runner import Runner
from noonday.ports import Claim
from noonday.store.database import Database
from noonday.targets.tasks import current
from noonday.testing import ManualClock, ManualInstance
from tests.factories import NOON, a_job, a_running_execution


def a_held() -> Held:
    job = a_job()
    return Held(Claim(job, a_running_execution(job=job)), NEVER, 0.0)


class Meeting:
    """A lock; somebody comes just before it is taken for the first time."""

    def __init__(self, comes: Any) -> None:
        self._comes = comes

    def __enter__(self) -> None:
        comes, self._comes = self._comes, None
        if comes is not None:
            comes()

    def __exit__(self, *_: object) -> None:
        pass


async def test_words_that_meet_the_end_of_their_run_leave_nothing_open(sqlite_db: Database) -> None:
    outputs = Outputs(db=sqlite_db, clock=ManualClock(NOON))
    held = a_held()
    held.silent = False
    outputs._lock = Meeting(lambda: outputs.close(held))  # type: ignore[assignment]
    outputs.write(held, "as it ends")
    assert not outputs.busy

    held = a_held()
    held.silent = False
    outputs.close(held)
    outputs.write(held, "too late")
    assert not outputs.busy


async def test_words_that_came_before_the_end_are_kept(sqlite_db: Database) -> None:
    outputs = Outputs(db=sqlite_db, clock=ManualClock(NOON))
    held = a_held()
    held.silent = False
    outputs.write(held, "in time")
    outputs.close(held)
    assert outputs.waits(held)
    assert not outputs.waits(a_held())


async def test_one_look_finds_all_that_last_and_no_other() -> None:
    clock, task = ManualClock(NOON), asyncio.create_task(asyncio.sleep(0))
    short, lasting, waiting, soon = a_held(), a_held(), a_held(), a_held()
    timers = Timers(clock, {one.id: one for one in (short, lasting, waiting, soon)})
    for held in (short, lasting, soon):
        held.begin_work(task)
        held.deadline = 0.15 if held is soon else 60.0
        timers.watch(held, 0.0)
    assert soon.timer is not None
    at_once = soon.timer
    assert (short.timer, lasting.timer) == (None, None)
    short.end_work()
    async with asyncio.timeout(20):
        while lasting.timer is None:
            await asyncio.sleep(0.01)
    assert (short.timer, waiting.timer, soon.timer) == (None, None, at_once)
    first = lasting.timer
    waiting.begin_work(task)
    waiting.deadline = 60.0
    timers.watch(waiting, 0.0)  # the next look comes for those that begin after the first
    async with asyncio.timeout(20):
        while waiting.timer is None:
            await asyncio.sleep(0.01)
    assert lasting.timer is first
    for held in (lasting, waiting, soon):
        held.end_work()


@pytest.mark.parametrize("how", ["returns", "waits", "fails", "reports", "writes", "times out"])
async def test_nothing_of_a_run_waits_for_a_search_for_garbage(
    sqlite_url: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[weakref.ref[Held]] = []
    run = Runner.run

    async def watched(runner: Runner, held: Held, task: asyncio.Task[Any]) -> Any:
        seen.append(weakref.ref(held))
        return await run(runner, held, task)

    monkeypatch.setattr(Runner, "run", watched)
    async with ManualInstance(sqlite_url, slots=2) as scheduler:

        @scheduler.task
        async def work() -> None:
            match how:
                case "waits":
                    await asyncio.sleep(0)
                case "fails":
                    raise ValueError("no")
                case "reports":
                    current().progress(0.5)
                    await scheduler.clock.sleep(1)
                case "writes":
                    current().output("hello")
                case "times out":
                    await scheduler.clock.sleep(60)

        for number in range(5):
            await scheduler.add(
                f"job-{number}",
                Immediate(),
                "work",
                timeout=timedelta(seconds=10),
                retry=RetryPolicy(max_retries=0),
            )
        gc.collect()
        gc.disable()
        try:
            await scheduler.tick(seconds=5)
            await scheduler.tick(seconds=30)
            await asyncio.sleep(0)
            assert len(seen) == 5
            assert [one() for one in seen] == [None] * 5
        finally:
            gc.enable()
