"""Runs that go on elsewhere after a 202: they live by their heartbeats, and a cancel is passed on to them."""

from __future__ import annotations

from datetime import timedelta

from noonday.control.executions import Executions
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import RetryPolicy
from noonday.domain.outcome import Accepted, Outcome
from noonday.domain.schedule import Immediate
from noonday.ports import Run
from noonday.testing import ManualInstance


class Elsewhere:
    async def run(self, run: Run) -> Outcome:
        return Accepted(heartbeat=timedelta(seconds=60), cancel_url="http://elsewhere.test/stop")


async def given_away(scheduler: ManualInstance, **fields: object) -> Execution:
    scheduler.engine.slots.hands.runner._target = Elsewhere()
    await scheduler.add("remote", Immediate(), "work", **fields)
    await scheduler.run_once()
    [run] = await scheduler.history("remote")
    assert (run.state, run.remote) == (ExecutionState.RUNNING, True)
    return run


async def test_it_needs_no_slot_and_no_renewal_for_a_run_elsewhere(scheduler: ManualInstance) -> None:
    run = await given_away(scheduler)
    assert scheduler.engine.slots.busy == len(scheduler.engine.leases) == 0
    assert run.lease_expires_at == scheduler.clock.now() + timedelta(seconds=60)


async def test_it_takes_a_silent_one_for_lost_by_its_own_heartbeat(scheduler: ManualInstance) -> None:
    await given_away(scheduler, retry=RetryPolicy(max_retries=0))
    await scheduler.tick(seconds=59)
    [run] = await scheduler.history("remote")
    assert run.losses == 0
    await scheduler.tick(seconds=2)
    [run] = await scheduler.history("remote")
    assert run.losses == 1


async def test_it_passes_a_cancel_on_and_tries_a_deaf_target_three_times(scheduler: ManualInstance) -> None:
    run = await given_away(scheduler)
    calls: list[str | None] = []

    async def deaf(execution: Execution) -> bool:
        calls.append(execution.cancel_url)
        if len(calls) == 1:
            raise OSError("nobody answers")
        return False

    canceller = scheduler.engine.canceller
    canceller._cancel = deaf
    assert await canceller.run_once() == timedelta(seconds=30)
    assert calls == []
    await Executions(scheduler.db, scheduler.clock).cancel(run.id, by="ada")
    for _ in range(5):
        await canceller.run_once()
    assert calls == ["http://elsewhere.test/stop"] * 3

    await scheduler.tick(seconds=61)
    [run] = await scheduler.history("remote")
    assert run.state is ExecutionState.CANCELLED


async def test_it_tells_a_target_that_hears_only_once(scheduler: ManualInstance) -> None:
    run = await given_away(scheduler)
    calls: list[str] = []

    async def hears(execution: Execution) -> bool:
        calls.append(execution.id)
        return True

    scheduler.engine.canceller._cancel = hears
    await Executions(scheduler.db, scheduler.clock).cancel(run.id, by="ada")
    for _ in range(3):
        await scheduler.engine.canceller.run_once()
    assert calls == [run.id]
