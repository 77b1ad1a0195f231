"""The leader ends pauses at their moment: nothing fires by surprise, and what was missed is recorded."""

from __future__ import annotations

from datetime import datetime, timedelta

from noonday.domain.execution import ExecutionState, SkipReason
from noonday.domain.job import JobState
from noonday.domain.schedule import Cron
from noonday.store import audit
from noonday.targets.tasks import current
from noonday.testing import ManualInstance

HOURLY = Cron(expression="0 * * * *")


def ran_tasks(scheduler: ManualInstance) -> list[datetime]:
    """What the task `work` will have been run for."""
    ran: list[datetime] = []

    @scheduler.task
    async def work() -> None:
        ran.append(current().scheduled_for)

    return ran


async def test_it_resumes_a_job_when_its_pause_is_over(scheduler: ManualInstance) -> None:
    job = await scheduler.add("hourly", HOURLY, run="noop")
    end = scheduler.clock.now() + timedelta(hours=2, minutes=30)
    await scheduler.jobs.pause(job.id, until=end)

    await scheduler.tick(hours=2)
    assert (await scheduler.jobs.get(job.id)).paused
    await scheduler.tick(minutes=31)

    resumed = await scheduler.jobs.get(job.id)
    assert (resumed.paused, resumed.paused_until, resumed.state) == (False, None, JobState.SCHEDULED)
    rows = await scheduler.history("hourly")
    assert [(row.skip_reason, row.skipped_count) for row in rows] == [(SkipReason.PAUSED, 2)]
    page = await scheduler.db.read(lambda conn: audit.page(conn, job.id))
    entry = page.items[0]
    assert (entry.actor, entry.action, entry.at) == ("scheduler", "resume", end)
    assert entry.revision == resumed.revision


async def test_what_is_due_at_the_end_of_the_pause_runs(scheduler: ManualInstance) -> None:
    ran = ran_tasks(scheduler)
    job = await scheduler.add("hourly", HOURLY, run="work")
    end = (scheduler.clock.now() + timedelta(hours=3)).replace(minute=0, second=0, microsecond=0)
    await scheduler.jobs.pause(job.id, until=end)
    await scheduler.tick(hours=3, minutes=1)
    rows = await scheduler.history("hourly")
    assert [(row.state, row.through_at or row.scheduled_for) for row in rows if row.scheduled_for <= end] == [
        (ExecutionState.SKIPPED, end - timedelta(hours=1)),
        (ExecutionState.COMPLETED, end),
    ]
    assert ran == [end]


async def test_a_late_leader_loses_nothing_that_came_after_the_pause(scheduler: ManualInstance) -> None:
    """Two hours were due in the pause; the third came behind its end, with nobody there to see to it."""
    ran = ran_tasks(scheduler)
    job = await scheduler.add("hourly", HOURLY, run="work")
    noon = scheduler.clock.now().replace(minute=0, second=0, microsecond=0)
    due = noon + timedelta(hours=3)
    await scheduler.jobs.pause(job.id, until=due - timedelta(seconds=10))
    await scheduler.kill()
    scheduler.clock.move_to(due + timedelta(seconds=20))
    await scheduler.restart()
    await scheduler.tick(seconds=1)
    assert ran == [due]
    rows = await scheduler.history("hourly")
    assert [(row.skip_reason, row.skipped_count) for row in rows if row.scheduled_for < due] == [
        (SkipReason.PAUSED, 2)
    ]


async def test_somebody_who_is_quicker_than_the_leader_ends_it_the_same_way(
    scheduler: ManualInstance,
) -> None:
    ran = ran_tasks(scheduler)
    job = await scheduler.add("hourly", HOURLY, run="work")
    due = scheduler.clock.now().replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    await scheduler.jobs.pause(job.id, until=due)
    scheduler.clock.move_to(due + timedelta(seconds=5))
    await scheduler.jobs.resume(job.id)
    await scheduler.tick(seconds=1)
    assert ran == [due]


async def test_several_instances_end_it_once(scheduler: ManualInstance) -> None:
    """The leader dies when it is about to; the next one does it, and nobody does it again."""
    job = await scheduler.add("hourly", HOURLY, run="noop")
    end = scheduler.clock.now() + timedelta(minutes=30)
    await scheduler.jobs.pause(job.id, until=end)
    async with scheduler.another():
        await scheduler.tick(minutes=29)
        await scheduler.kill()
        await scheduler.restart()
        await scheduler.tick(minutes=5)
        page = await scheduler.db.read(lambda conn: audit.page(conn, job.id))
        assert sorted(entry.action for entry in page.items) == ["create", "pause", "resume"]
    assert not (await scheduler.jobs.get(job.id)).paused


async def test_a_clock_that_is_set_back_pauses_nothing_again(scheduler: ManualInstance) -> None:
    ran = ran_tasks(scheduler)
    job = await scheduler.add("hourly", HOURLY, run="work")
    now = scheduler.clock.now()
    await scheduler.jobs.pause(job.id, until=now + timedelta(minutes=2))
    await scheduler.tick(minutes=3)
    scheduler.clock.step(minutes=-2)
    await scheduler.tick(minutes=1)
    assert not (await scheduler.jobs.get(job.id)).paused
    await scheduler.tick(hours=1)
    assert len(ran) == 1


async def test_a_job_that_is_switched_off_stays_so(scheduler: ManualInstance) -> None:
    job = await scheduler.add("hourly", HOURLY, run="noop")
    await scheduler.jobs.pause(job.id, until=scheduler.clock.now() + timedelta(minutes=5))
    await scheduler.jobs.disable(job.id)
    await scheduler.tick(hours=2)
    left = await scheduler.jobs.get(job.id)
    assert (left.paused, left.enabled) == (False, False)
    assert not [row for row in await scheduler.history("hourly") if row.skip_reason is None]


async def test_only_the_leader_does_it(scheduler: ManualInstance) -> None:
    assert scheduler.engine.resumer in scheduler.engine.actors
    assert scheduler.engine.resumer.gate is scheduler.engine.elector
