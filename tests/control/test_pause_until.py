"""A pause with an end: it may be changed, it must lie ahead, and resuming forgets it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from noonday.domain.errors import Invalid, MoveRefused
from noonday.domain.job import JobState
from noonday.domain.schedule import Cron
from tests.control.desk import Desk
from tests.factories import NOON

HOURLY = Cron(expression="0 * * * *")
END = NOON + timedelta(hours=3)


async def test_it_is_kept_with_the_job(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.pause(job.id, "alice", until=END)
    paused = await desk.jobs.get(job.id)
    assert (paused.state, paused.paused, paused.paused_until) == (JobState.PAUSED, True, END)
    (entry,) = [one for one in await desk.audit(job.id) if one.action == "pause"]
    assert entry.after is not None
    assert (entry.actor, entry.after["paused_until"]) == ("alice", END.isoformat())


async def test_its_end_may_be_changed_and_taken_away(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.pause(job.id, until=END)
    later = await desk.jobs.pause(job.id, until=END + timedelta(days=1))
    assert later.paused_until == END + timedelta(days=1)
    for_good = await desk.jobs.pause(job.id)
    assert (for_good.paused, for_good.paused_until) == (True, None)
    with pytest.raises(MoveRefused):
        await desk.jobs.pause(job.id)


async def test_resuming_forgets_the_end(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.pause(job.id, until=END)
    await desk.jobs.resume(job.id)
    assert (await desk.jobs.get(job.id)).paused_until is None


async def test_an_end_that_has_passed_is_refused(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    with pytest.raises(Invalid, match="has passed"):
        await desk.jobs.pause(job.id, until=NOON)
    assert not (await desk.jobs.get(job.id)).paused
