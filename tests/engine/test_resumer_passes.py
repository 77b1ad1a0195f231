"""The leader ends pauses at their moment: nothing fires by surprise, and what was missed is recorded."""

from __future__ import annotations

from datetime import timedelta

from noonday.domain.execution import SkipReason
from noonday.domain.job import JobState
from noonday.domain.schedule import Cron
from noonday.store import audit
from noonday.testing import ManualInstance

HOURLY = Cron(expression="0 * * * *")


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
