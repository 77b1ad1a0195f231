"""What the overview says comes next: of a job that is planned ahead it is a fire that is planned."""

from __future__ import annotations

from datetime import datetime

from noonday.domain.execution import Cause
from noonday.domain.job import Job, JobState, Lane
from noonday.store import overview
from noonday.store.database import Database
from tests.factories import NOON, a_job
from tests.store.store_steps import MINUTE, SECOND, add, plan_run


def armed(name: str, cursor: datetime, **more: object) -> Job:
    return a_job(name=name, state=JobState.SCHEDULED, next_run_at=cursor, **more)


def coming(db: Database, limit: int = 3, now: datetime = NOON) -> list[tuple[str, datetime]]:
    found = db.read_now(lambda conn: overview.coming(conn, now, limit))
    return [(one.job_name, one.at) for one in found]


def test_a_fire_that_is_planned_comes_before_the_cursor(db: Database) -> None:
    often, seldom = armed("often", NOON + 6 * SECOND), armed("seldom", NOON + 5 * SECOND)
    add(db, often, seldom)
    for seconds in (4, 2):
        plan_run(db, often, NOON + seconds * SECOND)
    assert coming(db) == [("often", NOON + 2 * SECOND), ("seldom", NOON + 5 * SECOND)]
    assert coming(db, now=NOON + 3 * SECOND)[0] == ("often", NOON + 4 * SECOND)


def test_no_job_is_crowded_out_by_the_cursors_of_others(db: Database) -> None:
    often = armed("often", NOON + MINUTE, lane=Lane.LOW, scheduler_version=2)
    add(db, often, *(armed(f"other-{n}", NOON + (5 + n) * SECOND) for n in range(3)))
    plan_run(db, often, NOON + SECOND)
    assert [name for name, _ in coming(db)] == ["often", "other-0", "other-1"]


def test_runs_that_are_overdue_or_asked_for_are_no_fires_to_come(db: Database) -> None:
    job = armed("job", NOON + MINUTE)
    add(db, job)
    plan_run(db, job, NOON - SECOND)
    plan_run(db, job, NOON + SECOND, cause=Cause.MANUAL)
    assert coming(db) == [("job", NOON + MINUTE)]


def test_a_job_that_fires_once_comes_until_it_does(db: Database) -> None:
    once = a_job(name="once", state=JobState.SCHEDULED, next_run_at=None)
    add(db, once)
    plan_run(db, once, NOON + SECOND)
    assert coming(db) == [("once", NOON + SECOND)]
    assert coming(db, now=NOON + SECOND) == []


def test_a_paused_job_does_not_come(db: Database) -> None:
    job = armed("paused", NOON + MINUTE, paused=True)
    add(db, job)
    plan_run(db, job, NOON + SECOND)
    assert coming(db) == []
