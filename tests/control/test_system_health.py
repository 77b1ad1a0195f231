"""Ready and healthy: what the scheduler says of itself, also when the database does not answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from noonday.control.explain import preview
from noonday.control.system import LocalStatus, System
from noonday.domain.job import Lane
from noonday.domain.schedule import Cron, Manual, Timing
from noonday.store.database import Database
from tests.control.desk import Desk, StillClock
from tests.factories import NOON

LOCAL = LocalStatus(instance_id="here", started_at=NOON - timedelta(seconds=90), slots=10, busy=2)


async def test_it_is_ready_when_the_database_is(desk: Desk) -> None:
    found = await System(desk.db, desk.clock, lambda: LOCAL).ready()
    assert found.ready
    assert found.checks == {"database": "ok", "migrations": "ok", "draining": "ok"}


async def test_it_is_not_ready_while_it_ends(desk: Desk) -> None:
    stopping = replace(LOCAL, stopping=True, draining=True)
    system = System(desk.db, desk.clock, lambda: stopping)
    assert not (await system.ready()).ready
    assert (await system.health()).status == "draining"


async def test_a_drained_one_still_answers_so_that_it_can_be_asked_to_resume(desk: Desk) -> None:
    draining = replace(LOCAL, draining=True)
    system = System(desk.db, desk.clock, lambda: draining)
    assert (await system.ready()).ready
    assert (await system.health()).status == "draining"


async def test_it_is_not_ready_before_the_migrations(empty_url: str) -> None:
    db = Database(empty_url)
    try:
        found = await System(db, StillClock(), lambda: LOCAL).ready()
    finally:
        await db.close()
    assert not found.ready
    assert "noonday migrate" in found.checks["migrations"]


async def test_it_says_so_when_the_database_is_gone(tmp_path: Path) -> None:
    db = Database("postgresql://nobody@127.0.0.1:1/none")
    try:
        system = System(db, StillClock(), lambda: LOCAL)
        found = await system.ready()
        health = await system.health()
    finally:
        await db.close()
    assert not found.ready
    assert found.checks["database"] != "ok"
    assert (health.status, health.queue) == ("unhealthy", {})


async def test_it_counts_what_waits_in_each_lane(desk: Desk) -> None:
    high = await desk.new(schedule=Manual(), lane=Lane.HIGH)
    await desk.new(schedule=Cron(expression="@daily"))
    await desk.jobs.force_run(high.id)
    health = await System(desk.db, desk.clock, lambda: LOCAL).health()
    assert health.status == "healthy"
    assert health.queue == {Lane.HIGH: 1, Lane.NORMAL: 0, Lane.LOW: 0}
    assert (health.cron_jobs, health.uptime_seconds) == (1, 90)
    await desk.claim()
    assert (await System(desk.db, desk.clock, lambda: LOCAL).health()).queue[Lane.HIGH] == 0


def test_it_explains_a_schedule_before_it_is_saved() -> None:
    found = preview(Timing(schedule=Cron(expression="0 2 * * *"), anchor_at=NOON), "", 2, NOON)
    assert found.words == "At 02:00 every day, UTC"
    assert [at.day for at in found.times] == [2, 3]
