"""Changes made by plain SQL: noticed, armed anew, nothing fired by surprise, a bad row alone harmed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import text

from noonday.domain import planning
from noonday.domain.execution import ExecutionState, SkipReason
from noonday.domain.job import Job, JobState
from noonday.domain.schedule import Cron, Interval, IntervalUnit
from noonday.engine.watcher import WatcherConfig
from noonday.testing import ManualInstance
from tests.factories import at

EVERY_10_S = Interval(count=10, unit=IntervalUnit.SECONDS)


async def sql(scheduler: ManualInstance, statement: str, **values: Any) -> None:
    await scheduler.db.write(lambda conn: conn.execute(text(statement), values))


async def test_it_follows_a_schedule_changed_by_sql(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    await scheduler.add("cron", Cron(expression="0 * * * *"), "work")
    await scheduler.run_once()
    await sql(scheduler, "UPDATE jobs SET cron_expression = '30 12 * * *' WHERE name = 'cron'")
    await scheduler.tick(minutes=45)
    [run] = [run for run in await scheduler.history("cron") if run.state is ExecutionState.COMPLETED]
    assert run.scheduled_for == at("2027-01-01T12:30:00Z")
    assert (await scheduler.jobs.get("cron")).next_run_at == at("2027-01-02T12:30:00Z")


async def test_it_takes_in_a_job_inserted_by_sql(scheduler: ManualInstance) -> None:
    ran: list[str] = []

    @scheduler.task
    async def work() -> None:
        ran.append("work")

    await sql(
        scheduler,
        "INSERT INTO jobs (name, schedule_type, interval_minutes, interval_type, target) "
        "VALUES ('by-hand', 'interval', 5, 'minutes', :target)",
        target='{"type": "python", "task": "work"}',
    )
    await scheduler.run_once()
    job = await scheduler.jobs.get("by-hand")
    assert job.state is JobState.SCHEDULED
    assert job.next_run_at is not None
    assert ran == []
    scheduler.clock.move_to(job.next_run_at)
    await scheduler.run_once()
    assert ran == ["work"]


async def test_it_stops_at_once_for_a_job_paused_by_sql_and_goes_on_with_the_next_future_time(
    scheduler: ManualInstance,
) -> None:
    """Promise 6: what fell into the pause is recorded, and nothing fires by surprise."""

    @scheduler.task
    async def work() -> None:
        pass

    await scheduler.add("often", EVERY_10_S, "work")
    await scheduler.tick(seconds=20)
    await sql(scheduler, "UPDATE jobs SET is_paused = true WHERE name = 'often'")
    await scheduler.tick(seconds=35)
    assert (await scheduler.jobs.get("often")).state is JobState.PAUSED
    await sql(scheduler, "UPDATE jobs SET is_paused = false WHERE name = 'often'")
    await scheduler.tick(seconds=10)
    rows = [row for row in await scheduler.history("often") if row.scheduled_for <= scheduler.clock.now()]
    runs = [row.scheduled_for.second for row in rows if row.state is ExecutionState.COMPLETED]
    assert runs == [10, 20, 0]
    [lapse] = [row for row in rows if row.state is ExecutionState.SKIPPED]
    assert lapse.skipped_count == 3
    assert lapse.skip_reason in (SkipReason.EDITED, SkipReason.PAUSED)


async def test_it_lets_a_bad_row_harm_itself_alone(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        pass

    await scheduler.add("bad", Cron(expression="0 * * * *"), "work")
    await scheduler.add("good", EVERY_10_S, "work")
    await sql(scheduler, "UPDATE jobs SET cron_expression = 'every full moon' WHERE name = 'bad'")
    await scheduler.tick(seconds=30)
    rows = [row for row in await scheduler.history("good") if row.scheduled_for <= scheduler.clock.now()]
    assert [row.state for row in rows] == [ExecutionState.COMPLETED] * 3
    assert scheduler.engine.counters.set_aside == 1

    await sql(scheduler, "UPDATE jobs SET cron_expression = '1 * * * *' WHERE name = 'bad'")
    await scheduler.tick(minutes=1)
    [run] = [row for row in await scheduler.history("bad") if row.state is ExecutionState.COMPLETED]
    assert run.scheduled_for == at("2027-01-01T12:01:00Z")


async def test_it_takes_many_changes_in_small_batches(scheduler: ManualInstance) -> None:
    scheduler.engine.watcher._config = WatcherConfig(batch=3)
    for number in range(10):
        await scheduler.add(f"job-{number}", Cron(expression="0 0 1 1 *"), "work")
    await sql(scheduler, "UPDATE jobs SET cron_expression = '0 * * * *'")
    await scheduler.engine.watcher.run_once()
    for number in range(10):
        assert (await scheduler.jobs.get(f"job-{number}")).next_run_at == at("2027-01-01T13:00:00Z")


async def test_it_sets_a_job_aside_whose_new_schedule_cannot_be_computed(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scheduler.add("odd", Cron(expression="0 * * * *"), "work")
    await scheduler.add("fine", Cron(expression="0 * * * *"), "work")
    await sql(scheduler, "UPDATE jobs SET cron_expression = '30 * * * *'")

    def poisoned(job: Job, now: datetime) -> planning.Plan:
        if job.name == "odd":
            raise ZeroDivisionError("a hole in the calendar")
        return planning.arm(job, now)

    monkeypatch.setattr("noonday.engine.watcher.arm", poisoned)
    await scheduler.engine.watcher.run_once()
    assert (await scheduler.jobs.get("fine")).next_run_at == at("2027-01-01T12:30:00Z")
    odd = await scheduler.jobs.get("odd")
    assert (odd.paused, odd.state) == (True, JobState.PAUSED)
    [row] = await scheduler.history("odd")
    assert row.detail is not None
    assert "a hole in the calendar" in row.detail
