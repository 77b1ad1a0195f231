"""One attempt and those who may stop it: time-out, cancel, retry, a lost lease, a run that is deaf."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from noonday.control.executions import Executions
from noonday.domain.execution import Execution, ExecutionState, WaitReason
from noonday.domain.job import OnLost, RetryPolicy
from noonday.domain.outcome import Completed, Outcome
from noonday.domain.schedule import Immediate, Interval, IntervalUnit, Once
from noonday.engine.held import Stop, outcome_of
from noonday.ports import Run
from noonday.store.leases import report
from noonday.targets.tasks import TaskFailed, current
from noonday.testing import ManualInstance
from tests.factories import at

ONE_RETRY = RetryPolicy(max_retries=1, backoff=timedelta(seconds=60))
NO_RETRY = RetryPolicy(max_retries=0)


async def only(scheduler: ManualInstance, name: str) -> Execution:
    [run] = await scheduler.history(name)
    return run


async def test_it_ends_a_run_that_takes_too_long_and_tries_again(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        if current().attempt == 1:
            await scheduler.clock.sleep(1000)

    await scheduler.add("slow", Immediate(), "work", timeout=timedelta(seconds=30), retry=ONE_RETRY)
    await scheduler.tick(seconds=30)
    waiting = await only(scheduler, "slow")
    assert (waiting.state, waiting.wait_reason) == (ExecutionState.PENDING, WaitReason.RETRY)
    assert waiting.available_at == at("2027-01-01T12:01:30Z")
    assert waiting.error == "took longer than 30 s"

    await scheduler.tick(seconds=60)
    done = await only(scheduler, "slow")
    assert (done.state, done.attempt, done.failures) == (ExecutionState.COMPLETED, 2, 1)
    assert [one.outcome for one in await scheduler.attempts(done)] == ["timed_out", "completed"]


async def test_it_ends_a_run_at_its_time_out_on_the_real_clock(scheduler: ManualInstance) -> None:
    """The timer of production, which a clock moved by hand has no use for."""
    started = asyncio.Event()

    @scheduler.task
    async def work() -> None:
        started.set()
        await asyncio.Event().wait()

    leases = scheduler.engine.leases
    object.__setattr__(leases._config, "timers", True)
    await scheduler.add("slow", Immediate(), "work", timeout=timedelta(seconds=0.05), retry=NO_RETRY)
    async with asyncio.timeout(20):
        await scheduler.run_once()
    assert started.is_set()
    run = await only(scheduler, "slow")
    assert (run.state, run.error) == (ExecutionState.FAILED, "took longer than 0.05 s")


async def test_it_cancels_a_running_attempt_at_once_and_does_not_retry_it(scheduler: ManualInstance) -> None:
    told: list[str] = []

    @scheduler.task
    async def work() -> None:
        try:
            await scheduler.clock.sleep(1000)
        except asyncio.CancelledError:
            told.append("cancelled")
            raise

    await scheduler.add("slow", Immediate(), "work", retry=ONE_RETRY)
    await scheduler.run_once()
    run = await only(scheduler, "slow")
    await Executions(scheduler.db, scheduler.clock).cancel(run.id, by="ada")
    await asyncio.sleep(0)
    assert scheduler.engine.leases.wake.is_set()  # the request itself woke the leases
    await scheduler.run_once()
    run = await only(scheduler, "slow")
    assert told == ["cancelled"]
    assert run.state is ExecutionState.CANCELLED
    assert run.detail == "cancelled by ada"
    assert [one.outcome for one in await scheduler.attempts(run)] == ["cancelled"]


async def test_it_keeps_what_a_run_did_that_ended_despite_its_cancel(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> str:
        try:
            await scheduler.clock.sleep(1000)
        except asyncio.CancelledError:
            return "it was done already"
        return "never"

    await scheduler.add("deaf", Immediate(), "work")
    await scheduler.run_once()
    run = await only(scheduler, "deaf")
    await Executions(scheduler.db, scheduler.clock).cancel(run.id, by="ada")
    await scheduler.run_once()
    run = await only(scheduler, "deaf")
    assert (run.state, run.result.value) == (ExecutionState.COMPLETED, "it was done already")


async def test_it_leaves_a_run_to_itself_that_does_not_stop_when_told(scheduler: ManualInstance) -> None:
    """Neither its row nor its slot may be stuck because of it."""
    free = asyncio.Event()

    @scheduler.task
    async def stubborn() -> str:
        while not free.is_set():
            try:
                await scheduler.clock.sleep(10_000)
            except asyncio.CancelledError:
                continue
        return "too late"

    await scheduler.add("stubborn", Immediate(), "stubborn", timeout=timedelta(seconds=5), retry=NO_RETRY)
    await scheduler.tick(seconds=60)
    run = await only(scheduler, "stubborn")
    assert (run.state, run.error) == (ExecutionState.FAILED, "took longer than 5 s")
    assert scheduler.engine.counters.abandoned == 1
    assert scheduler.engine.slots.busy == 0

    free.set()
    await scheduler.tick(seconds=10_000)
    assert (await only(scheduler, "stubborn")).state is ExecutionState.FAILED


async def test_it_retries_with_growing_pauses_and_then_fails(scheduler: ManualInstance) -> None:
    moments: list[float] = []

    @scheduler.task
    async def work() -> None:
        moments.append(scheduler.clock.monotonic())
        raise TaskFailed("not today")

    policy = RetryPolicy(max_retries=3, backoff=timedelta(seconds=60))
    await scheduler.add("failing", Immediate(), "work", retry=policy)
    await scheduler.tick(minutes=20)
    assert moments == [0, 60, 180, 420]
    run = await only(scheduler, "failing")
    assert (run.state, run.failures, run.attempt) == (ExecutionState.FAILED, 4, 4)
    assert run.error == "not today"


async def test_it_waits_as_long_as_the_target_asks(scheduler: ManualInstance) -> None:
    moments: list[float] = []

    @scheduler.task
    async def work() -> None:
        moments.append(scheduler.clock.monotonic())
        if len(moments) == 1:
            raise TaskFailed("busy", retry_after=timedelta(minutes=10))

    await scheduler.add("polite", Immediate(), "work", retry=ONE_RETRY)
    await scheduler.tick(minutes=20)
    assert moments == [0, 600]


async def test_it_keeps_renewing_so_that_a_long_run_is_never_taken_away(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(600)

    await scheduler.add("long", Immediate(), "work")
    async with scheduler.another() as other:
        await scheduler.tick(seconds=600)
        run = await only(scheduler, "long")
        assert (run.state, run.attempt, run.losses) == (ExecutionState.COMPLETED, 1, 0)
        assert scheduler.engine.counters.recovered == other.engine.counters.recovered == 0


async def test_it_refuses_the_result_of_a_zombie(scheduler: ManualInstance) -> None:
    """Paused longer than its lease, it wakes and reports; meanwhile another has done the work."""
    results: list[str] = []

    @scheduler.task
    async def work() -> str:
        await scheduler.clock.sleep(50)
        results.append(f"attempt {current().attempt}")
        return results[-1]

    await scheduler.add("long", Immediate(), "work")
    await scheduler.run_once()
    async with scheduler.another() as other:
        scheduler.pause()
        await other.tick(seconds=40)  # the lease of 30 s dies, the other takes over
        await other.tick(seconds=60)
        taken = await only(scheduler, "long")
        assert (taken.state, taken.instance_id, taken.attempt) == (ExecutionState.COMPLETED, "manual-2", 2)

        scheduler.resume()
        await scheduler.run_once()
        assert results == ["attempt 1", "attempt 2"]  # both ran, and only one counts
        assert await only(scheduler, "long") == taken
        assert taken.result.value == "attempt 2"
        assert taken.losses == 1
        assert [one.outcome for one in await scheduler.attempts(taken)] == ["lost", "completed"]
        assert scheduler.engine.counters.refused == 1


async def test_it_stops_an_attempt_whose_lease_somebody_else_has(scheduler: ManualInstance) -> None:
    """And what such an attempt still returns is not even offered."""

    @scheduler.task
    async def work() -> str:
        try:
            await scheduler.clock.sleep(100)
        except asyncio.CancelledError:
            return "mine all the same"
        return "done"

    await scheduler.add("long", Immediate(), "work", retry=RetryPolicy(on_lost=OnLost.FAIL))
    await scheduler.run_once()
    async with scheduler.another() as other:
        scheduler.pause()
        await other.tick(seconds=35)
        failed = await only(scheduler, "long")
        assert failed.state is ExecutionState.FAILED
        scheduler.resume()
        await scheduler.run_once()
        assert (scheduler.engine.counters.lease_losses, scheduler.engine.counters.refused) == (1, 0)
        assert len(scheduler.engine.leases) == 0
        assert await only(scheduler, "long") == failed


async def test_it_stops_what_it_cannot_renew_before_anybody_else_may_start_it(
    scheduler: ManualInstance,
) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(100)

    await scheduler.add("long", Immediate(), "work")
    await scheduler.run_once()
    scheduler.clock.advance(seconds=28)  # trusted for 27 s, leased for 30
    leases = scheduler.engine.leases
    leases._look_at_the_clock()
    assert leases._held
    assert all(held.stopped is not None and held.stopped.value == "lost" for held in leases)
    run = await only(scheduler, "long")
    assert run.lease_expires_at is not None
    assert run.lease_expires_at > scheduler.clock.now()


async def test_it_writes_the_newest_progress_once_however_often_it_is_reported(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    @scheduler.task
    async def work() -> None:
        for step in range(1000):
            current().progress(step / 1000, f"step {step}")
            if step % 100 == 0:
                await asyncio.sleep(0)
        await scheduler.clock.sleep(60)

    writes: list[object] = []

    def counted(conn: Connection, *args: Any, **named: Any) -> bool:
        writes.append(args)
        return report(conn, *args, **named)

    monkeypatch.setattr("noonday.engine.reporter.executions.report", counted)
    await scheduler.add("chatty", Immediate(), "work")
    await scheduler.run_once()
    run = await only(scheduler, "chatty")
    assert run.progress == 0.999
    assert run.progress_message == "step 999"
    assert 1 <= len(writes) <= 3


async def test_it_makes_a_raising_target_fail_its_own_attempt_alone(scheduler: ManualInstance) -> None:
    class Broken:
        async def run(self, run: Run) -> Outcome:
            if run.claim.job.name == "broken":
                raise KeyError("a bug in a target")
            return Completed()

    scheduler.engine.slots.hands.runner._target = Broken()
    await scheduler.add("broken", Immediate(), "work", retry=NO_RETRY)
    await scheduler.add("fine", Immediate(), "work")
    await scheduler.run_once()
    broken = await only(scheduler, "broken")
    assert broken.state is ExecutionState.FAILED
    assert broken.error is not None
    assert "a bug in a target" in broken.error
    assert broken.stack is not None
    assert (await only(scheduler, "fine")).state is ExecutionState.COMPLETED


async def test_it_runs_a_fixed_delay_from_the_end_of_the_run_before(scheduler: ManualInstance) -> None:
    started: list[float] = []

    @scheduler.task
    async def work() -> None:
        started.append(scheduler.clock.monotonic())
        await scheduler.clock.sleep(15)

    every = Interval(count=60, unit=IntervalUnit.SECONDS, after_completion=True)
    await scheduler.add("delayed", every, "work")
    await scheduler.tick(minutes=5)
    assert started == [60, 135, 210, 285]


async def test_it_survives_a_step_of_the_wall_clock_while_something_runs(scheduler: ManualInstance) -> None:
    """Leases and time-outs live on the monotonic clock."""

    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(60)

    await scheduler.add("long", Immediate(), "work")
    await scheduler.run_once()
    scheduler.clock.step(minutes=-2)
    await scheduler.tick(seconds=30)
    scheduler.clock.step(minutes=4)
    await scheduler.tick(seconds=30)
    run = await only(scheduler, "long")
    assert (run.state, run.attempt) == (ExecutionState.COMPLETED, 1)


async def test_it_starts_a_run_that_is_due_now_without_delay(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    await scheduler.add("dot", Once(run_at=at("2027-01-01T12:00:10.250Z")), "work")
    await scheduler.tick(seconds=11)
    run = await only(scheduler, "dot")
    assert run.started_at == run.scheduled_for == at("2027-01-01T12:00:10.250Z")


async def test_it_reports_nothing_of_a_cancelled_attempt_whose_lease_is_gone_too(
    scheduler: ManualInstance,
) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(1000)

    await scheduler.add("long", Immediate(), "work")
    await scheduler.run_once()
    [held] = scheduler.engine.leases
    held.stop(Stop.CANCEL, scheduler.clock.monotonic())
    held.stop(Stop.LOST, scheduler.clock.monotonic())
    held.stop(Stop.TIME_OUT, scheduler.clock.monotonic())
    assert held.stopped is Stop.LOST
    assert outcome_of(held) is None
    await scheduler.run_once()
    assert (await only(scheduler, "long")).state is ExecutionState.RUNNING  # until its lease is over
    assert scheduler.engine.counters.settled == 0
