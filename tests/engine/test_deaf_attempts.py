"""An attempt that does not hear: it is left to itself, and nobody waits for it."""

from __future__ import annotations

import asyncio

from noonday.domain.execution import ExecutionState
from noonday.domain.schedule import Immediate
from noonday.testing import ManualInstance


async def test_it_is_drained_as_soon_as_the_last_attempt_is_left_to_itself(scheduler: ManualInstance) -> None:
    over = asyncio.Event()

    @scheduler.task
    async def deaf() -> None:
        while not over.is_set():
            try:
                await scheduler.clock.sleep(3600)
            except asyncio.CancelledError:
                continue

    await scheduler.add("job", Immediate(), "deaf")
    await scheduler.run_once()
    engine = scheduler.engine
    [held] = engine.leases
    drained = asyncio.ensure_future(engine.slots.drain())
    await asyncio.sleep(0)
    engine.slots.release()
    await asyncio.sleep(0)
    scheduler.clock.advance(seconds=15)  # longer than it may take to let go
    await engine.leases.run_once()
    await engine.settler.run_once()
    async with asyncio.timeout(5):
        await drained
    [run] = await scheduler.history("job")
    assert run.state is ExecutionState.QUEUED, "handed back"
    over.set()
    scheduler.clock.advance(hours=1)
    assert held.task is not None
    await held.task
