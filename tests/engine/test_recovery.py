"""After a crash: orphans are settled when their lease is over, once, visibly; parked tasks come back."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import text

from noonday.domain.execution import ExecutionState, WaitReason
from noonday.domain.job import MisfirePolicy, OnLost, RetryPolicy
from noonday.domain.schedule import Cron, Immediate, Interval, IntervalUnit, Once
from noonday.engine import looks
from noonday.engine.pruner import PrunerConfig
from noonday.store import executions, instances, pruning
from noonday.store.executions import ClaimOrder
from noonday.targets.tasks import current
from noonday.testing import ManualInstance
from tests.factories import at

EVERY_10_S = Interval(count=10, unit=IntervalUnit.SECONDS)


async def test_it_runs_an_orphan_again_as_soon_as_its_lease_is_over(scheduler: ManualInstance) -> None:
    started: list[tuple[int, float]] = []

    @scheduler.task
    async def work() -> None:
        started.append((current().attempt, scheduler.clock.monotonic()))
        await scheduler.clock.sleep(10)

    await scheduler.add("orphan", Immediate(), "work")
    await scheduler.tick(seconds=3)
    await scheduler.restart()
    await scheduler.tick(minutes=1)
    [run] = await scheduler.history("orphan")
    assert run.state is ExecutionState.COMPLETED
    assert (run.attempt, run.losses, run.failures) == (2, 1, 0)
    assert [one.outcome for one in await scheduler.attempts(run)] == ["lost", "completed"]
    assert [attempt for attempt, _ in started] == [1, 2]
    # Renewed for the last time at 3 s for 30 s; then at once, not at the next beat of anything.
    assert started[1][1] == pytest.approx(33, abs=0.001)
    assert scheduler.engine.counters.recovered == 1


async def test_it_fails_an_orphan_where_the_job_must_not_run_twice(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(10)

    await scheduler.add("orphan", Immediate(), "work", retry=RetryPolicy(on_lost=OnLost.FAIL))
    await scheduler.tick(seconds=1)
    await scheduler.restart()
    await scheduler.tick(minutes=1)
    [run] = await scheduler.history("orphan")
    assert run.state is ExecutionState.FAILED
    assert run.error is not None
    assert "manual-1" in run.error


async def test_it_gives_up_on_a_job_that_kills_every_worker(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def killer() -> None:
        await scheduler.clock.sleep(10_000)

    @scheduler.task
    async def fine() -> None:
        pass

    await scheduler.add("killer", Immediate(), "killer")
    await scheduler.add("fine", EVERY_10_S, "fine", misfire=MisfirePolicy(coalesce=False))
    for _ in range(10):
        await scheduler.tick(seconds=5)
        await scheduler.restart()
        await scheduler.tick(seconds=31)
    [run] = await scheduler.history("killer")
    assert run.state is ExecutionState.FAILED
    assert run.losses == 5
    others = await scheduler.history("fine")
    assert all(
        other.state is ExecutionState.COMPLETED
        for other in others
        if other.scheduled_for <= scheduler.clock.now()
    )


async def test_it_takes_back_at_once_what_an_instance_of_its_own_given_id_held(
    scheduler: ManualInstance,
) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(10)

    await scheduler.add("orphan", Immediate(), "work")
    await scheduler.tick(seconds=1)
    await scheduler.restart()
    assert await scheduler.engine.recoverer.take_back("somebody-else") == 0
    assert await scheduler.engine.recoverer.take_back("manual-1") == 1
    await scheduler.tick(seconds=10)
    [run] = await scheduler.history("orphan")
    assert (run.state, run.attempt, run.losses) == (ExecutionState.COMPLETED, 2, 1)


async def test_what_was_claimed_ahead_of_its_moment_by_a_process_that_died_is_not_lost(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It never began: it runs at its moment, even where a job must not run twice. However many there are."""
    monkeypatch.setattr(looks, "MOST", 2)
    ran: list[datetime] = []

    @scheduler.task
    async def work() -> None:
        ran.append(scheduler.clock.now())

    moment = scheduler.clock.now() + timedelta(seconds=1)
    for number in range(5):
        await scheduler.add(
            f"one-{number}", Once(run_at=moment), "work", retry=RetryPolicy(on_lost=OnLost.FAIL)
        )
    await scheduler.engine.planner.run_once()
    now = scheduler.clock.now()
    order = ClaimOrder(
        instance_id="manual-1", limit=5, now=now, lease=timedelta(seconds=30), lead=timedelta(seconds=2)
    )
    assert len(await scheduler.db.write(partial(executions.claim, order=order))) == 5
    await scheduler.restart()
    assert await scheduler.engine.recoverer.take_back("manual-1") == 5
    await scheduler.tick(seconds=2)
    assert ran == [moment] * 5
    for number in range(5):
        [run] = await scheduler.history(f"one-{number}")
        assert (run.state, run.losses) == (ExecutionState.COMPLETED, 0)
        assert [one.outcome for one in await scheduler.attempts(run)] == ["released", "completed"]


async def test_what_cannot_be_settled_does_not_keep_an_instance_from_its_start(
    scheduler: ManualInstance,
) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(10)

    await scheduler.add("orphan", Immediate(), "work")
    await scheduler.tick(seconds=1)
    await scheduler.restart()
    await scheduler.db.write(lambda conn: conn.execute(text("UPDATE executions SET lease_token = NULL")))
    assert await asyncio.wait_for(scheduler.engine.recoverer.take_back("manual-1"), 20) == 0


async def test_it_accounts_for_every_due_time_across_crashes(scheduler: ManualInstance) -> None:
    """Promise 1: each is executed, or carries the reason why not."""

    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(3)

    await scheduler.add("often", EVERY_10_S, "work", misfire=MisfirePolicy(coalesce=False))
    await scheduler.add("hourly", Cron(expression="30 * * * *"), "work")
    for down in (0, 7, 45, 200, 4000):
        await scheduler.tick(seconds=21.5)
        await scheduler.restart()
        scheduler.clock.advance(seconds=down)
    await scheduler.tick(minutes=1)
    rows = await scheduler.history("often")
    now = scheduler.clock.now()
    accounted = 0
    for row in rows:
        if row.scheduled_for <= now - timedelta(seconds=5):
            assert row.state in (ExecutionState.COMPLETED, ExecutionState.SKIPPED)
            accounted += row.skipped_count or 1
    slots = [row.scheduled_for for row in rows]
    assert len(slots) == len(set(slots))
    assert accounted == int((now - timedelta(seconds=5) - at("2027-01-01T12:00:00Z")).total_seconds() // 10)
    assert any(row.skip_reason for row in rows)


async def test_it_plans_and_runs_nothing_twice_with_two_instances_and_crashes(
    scheduler: ManualInstance,
) -> None:
    """Promise 2: a second run only after the first lease died, under the same id."""
    seen: list[tuple[str, int]] = []

    @scheduler.task
    async def work() -> None:
        seen.append((current().execution_id, current().attempt))
        await scheduler.clock.sleep(4)

    for number in range(5):
        await scheduler.add(f"job-{number}", EVERY_10_S, "work")
    async with scheduler.another() as other:
        for victim in (scheduler, other, scheduler):
            await scheduler.tick(seconds=32)
            await victim.restart()
        await scheduler.tick(seconds=60)
    assert len(seen) == len(set(seen))
    repeated = {execution for execution, attempt in seen if attempt > 1}
    for number in range(5):
        for run in await scheduler.history(f"job-{number}"):
            assert (run.losses > 0) == (run.id in repeated)


async def test_it_parks_an_unknown_task_and_runs_it_once_somebody_knows_it(scheduler: ManualInstance) -> None:
    await scheduler.add("unknown", Immediate(), "later")
    await scheduler.tick(seconds=1)
    [run] = await scheduler.history("unknown")
    assert (run.state, run.wait_reason) == (ExecutionState.PENDING, WaitReason.UNKNOWN_TASK)
    await scheduler.engine.unparker.run_once()
    await scheduler.tick(minutes=10)
    [run] = await scheduler.history("unknown")
    assert run.state is ExecutionState.PENDING  # never deleted, never failed

    @scheduler.task
    async def later() -> None:
        pass

    await scheduler.engine.unparker.run_once()
    await scheduler.run_once()
    [run] = await scheduler.history("unknown")
    assert (run.state, run.failures) == (ExecutionState.COMPLETED, 0)


async def test_it_clears_a_stale_lock_and_counts_it(scheduler: ManualInstance) -> None:
    job = await scheduler.add("locked", Cron(expression="0 0 1 1 *"), "work")
    long_ago = scheduler.clock.now() - timedelta(hours=1)
    statement = text("UPDATE jobs SET lock_token = 'dead', lock_acquired_at = :at WHERE id = :id")
    stamp = long_ago if scheduler.db.dialect == "postgresql" else long_ago.strftime("%Y-%m-%d %H:%M:%S.%f")
    await scheduler.db.write(lambda conn: conn.execute(statement, {"at": stamp, "id": job.id}))
    await scheduler.engine.sweeper.run_once()
    assert scheduler.engine.counters.stale_locks_cleared == 1
    found = await scheduler.db.read(
        lambda conn: conn.execute(text("SELECT lock_token FROM jobs WHERE name = 'locked'")).scalar()
    )
    assert found is None


async def test_it_tells_of_itself_and_is_forgotten_when_it_falls_silent(scheduler: ManualInstance) -> None:
    await scheduler.engine.heartbeat.run_once()
    [row] = await scheduler.db.read(instances.everyone)
    assert row.id == "manual-1"
    scheduler.clock.advance(hours=2)
    await scheduler.engine.sweeper.run_once()
    assert await scheduler.db.read(instances.everyone) == ()
    await scheduler.engine.heartbeat.run_once()
    await scheduler.engine.heartbeat.stop()
    assert await scheduler.db.read(instances.everyone) == ()


async def test_it_prunes_old_history_and_keeps_what_is_open(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    await scheduler.add("often", EVERY_10_S, "work")
    await scheduler.tick(minutes=5)
    scheduler.engine.pruner._config = PrunerConfig(keep_runs=5, keep_days=0, batch=7)
    await scheduler.engine.pruner.run_once()
    rows = await scheduler.history("often")
    ended = [row for row in rows if not row.state.open]
    assert len(ended) == 5
    assert scheduler.engine.counters.pruned == 25
    assert max(row.scheduled_for for row in ended) == at("2027-01-01T12:05:00Z")


async def test_it_prunes_the_history_of_many_jobs_in_several_passes(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    for n in range(5):
        await scheduler.add(f"often {n}", EVERY_10_S, "work")
    await scheduler.tick(minutes=1)
    monkeypatch.setattr(pruning, "WINDOW", 2)
    config = PrunerConfig(keep_runs=1, keep_days=0, batch=3, jobs=1, windows=1)
    scheduler.engine.pruner._config = config
    wishes = [await scheduler.engine.pruner.run_once() for _ in range(3)]
    assert wishes == [config.pause, config.pause, config.every]
    for n in range(5):
        assert len([row for row in await scheduler.history(f"often {n}") if not row.state.open]) == 1


async def test_it_sleeps_until_the_earliest_lease_ends_and_never_longer_than_one_lease(
    scheduler: ManualInstance,
) -> None:
    @scheduler.task
    async def work() -> None:
        await scheduler.clock.sleep(1000)

    recoverer = scheduler.engine.recoverer
    assert await recoverer.run_once() == at("2027-01-01T12:00:30Z")
    await scheduler.add("long", Immediate(), "work")
    await scheduler.engine.planner.run_once()
    await scheduler.engine.worker.run_once()
    scheduler.clock.advance(seconds=20)
    assert await recoverer.run_once() == at("2027-01-01T12:00:30Z")
    scheduler.clock.advance(seconds=15)  # over, but held by this very process: no hot loop about it
    assert await recoverer.run_once() == at("2027-01-01T12:00:35.100Z")
