"""Jobs that will fire, with nothing but their times: from memory while they stay as they are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from sqlalchemy import event, update

from noonday.domain.job import Job
from noonday.domain.schedule import Cron
from noonday.store import forecasting, jobs
from noonday.store.database import Database
from noonday.store.tables import jobs as table
from tests.factories import NOON, a_job

HOUR = timedelta(hours=1)


def add(db: Database, *names: str, **changes: Any) -> list[Job]:
    made = [
        a_job(name=name, schedule=Cron(expression="0 * * * *"), next_run_at=NOON + HOUR, **changes)
        for name in names
    ]
    db.write_now(lambda conn: [jobs.add(conn, job) for job in made])
    return made


def seen(db: Database) -> dict[str, str]:
    """The cron texts by the id."""
    found, more = db.write_now(lambda conn: forecasting.timed_until(conn, NOON + 2 * HOUR))
    assert not more
    return {one.id: getattr(one.timing.schedule, "expression", "") for one in found}


def change(db: Database, job: Job, **values: Any) -> None:
    db.write_now(lambda conn: conn.execute(update(table).where(table.c.id == job.id).values(values)))


def test_it_gives_those_that_fire_in_time(db: Database) -> None:
    soon, late, paused = add(db, "soon", "late", "paused")
    change(db, late, next_run_at=NOON + 3 * HOUR)
    change(db, paused, is_paused=True)
    assert seen(db) == {soon.id: "0 * * * *"}
    found = db.write_now(lambda conn: forecasting.timed(conn, [soon.id, late.id, paused.id]))
    assert found.keys() == {soon.id, late.id}
    assert found[late.id].next_run_at == NOON + 3 * HOUR


def test_a_changed_job_is_read_again_and_no_other(db: Database) -> None:
    kept, changed = add(db, "kept", "changed")
    assert set(seen(db).values()) == {"0 * * * *"}
    asked: list[str] = []

    def hear(*told: Any) -> None:
        asked.append(told[2])

    def again(conn: Any) -> dict[str, str]:
        event.listen(conn, "before_cursor_execute", hear)
        found, _ = forecasting.timed_until(conn, NOON + 2 * HOUR)
        return {one.id: getattr(one.timing.schedule, "expression", "") for one in found}

    db.write_now(again)
    assert len(asked) == 1, "the times of both are in memory"
    change(db, changed, cron_expression="5 * * * *", revision=2)
    assert db.write_now(again) == {kept.id: "0 * * * *", changed.id: "5 * * * *"}
    assert len(asked) == 3


def test_an_unreadable_row_harms_itself_alone(db: Database) -> None:
    good, bad = add(db, "good", "bad")
    change(db, bad, timezone="Nowhere/Else", revision=2)
    assert seen(db).keys() == {good.id}


def test_every_change_of_a_job_is_told_apart(db: Database) -> None:
    states = []

    def look() -> None:
        states.append(db.write_now(forecasting.state_of))

    look()
    one, other = add(db, "one", "other")
    look()
    change(db, one, revision=2)
    look()
    db.write_now(lambda conn: jobs.remove(conn, other.id))
    look()
    change(db, one, next_run_at=NOON + 5 * HOUR)
    assert db.write_now(forecasting.state_of) == states[-1], "its cursor moves by itself"
    assert len(set(states)) == 4
