"""The last runs of some jobs, and what a list can be narrowed by."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import event, insert, text

from noonday.domain import search_fields, searching
from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job, JobId, Lane
from noonday.domain.schedule import Manual
from noonday.domain.target import ServiceTarget
from noonday.store import executions, facets, jobs, strips
from noonday.store.database import Database
from noonday.store.execution_rows import settled_values
from noonday.store.jobs import JobFilter
from noonday.store.tables import executions as table
from noonday.store.tables import jobs as job_table
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import analyse, as_new

MINUTE = timedelta(minutes=1)


def add(db: Database, *made: Job) -> None:
    db.write_now(lambda conn: [jobs.add(conn, job) for job in made])


def run(db: Database, job: Job, number: int, state: ExecutionState, took: timedelta | None) -> None:
    due = NOON + number * MINUTE
    times: dict[str, Any] = {} if took is None else {"started_at": due, "completed_at": due + took}
    made = an_execution(job=job, scheduled_for=due, state=state, attempt=1, **times)

    def work(conn: Any) -> None:
        executions.plan(conn, [made])
        conn.execute(table.update().where(table.c.id == made.id).values(settled_values(made)))

    db.write_now(work)


def test_it_gives_the_newest_runs_of_each_job_oldest_first(db: Database) -> None:
    busy, calm, new = a_job(name="busy"), a_job(name="calm"), a_job(name="new")
    add(db, busy, calm, new)
    for number in range(5):
        run(db, busy, number, ExecutionState.COMPLETED, number * MINUTE)
    run(db, busy, 5, ExecutionState.QUEUED, None)  # has not begun
    run(db, calm, 0, ExecutionState.FAILED, MINUTE)
    run(db, calm, 1, ExecutionState.SKIPPED, None)
    found = db.read_now(lambda conn: strips.strips(conn, [busy.id, calm.id, new.id], 3))
    assert [(bar.due, bar.took) for bar in found[busy.id]] == [
        (NOON + number * MINUTE, number * MINUTE) for number in (2, 3, 4)
    ]
    assert [bar.state.value for bar in found[calm.id]] == ["failed", "skipped"]
    assert found[new.id] == ()


def test_no_jobs_have_no_runs(db: Database) -> None:
    assert db.read_now(lambda conn: strips.strips(conn, [])) == {}


def test_it_reads_the_end_of_an_index_for_each_job_and_no_more(db: Database) -> None:
    """Whatever the history holds: with enough rows a plan that reads them all would be told."""
    add(as_new(db), job := a_job())
    rows = [
        executions_row(job.id, number) | {"id": f"00000000-0000-7000-8000-{number:012d}"}
        for number in range(3_000)
    ]

    db.write_now(lambda conn: conn.execute(insert(table), rows))
    analyse(db)
    seen: list[str] = []

    def look(conn: Any) -> None:
        @event.listens_for(conn, "before_cursor_execute", retval=True)
        def explained(_c: Any, _k: Any, sql: str, values: Any, *_: Any) -> tuple[str, Any]:
            word = "EXPLAIN QUERY PLAN" if db.dialect == "sqlite" else "EXPLAIN"
            seen.extend(
                str(row) for row in conn.connection.driver_connection.execute(f"{word} {sql}", values)
            )
            return sql, values

        strips.strips(conn, [job.id])

    db.read_now(look)
    plan = "\n".join(seen)
    assert "executions_slot_key" in plan or "sqlite_autoindex_executions" in plan, plan
    assert "Seq Scan on executions" not in plan, plan
    assert "SCAN executions" not in plan, plan


def executions_row(job_id: JobId, number: int) -> dict[str, Any]:
    due = NOON + number * MINUTE
    return {
        "job_id": job_id,
        "cause": "schedule",
        "scheduled_for": due,
        "state": "completed",
        "started_at": due,
        "completed_at": due,
        "created_at": due,
    }


@pytest.fixture
def fleet(db: Database) -> Database:
    mail = ServiceTarget(service="mail", endpoint="/jobs/digest")
    add(
        db,
        a_job(tags=("nightly", "shop"), target=mail),
        a_job(tags=("nightly",), lane=Lane.HIGH),
        a_job(schedule=Manual()),
    )
    return db


def counted(db: Database, q: str) -> facets.Facets:
    wanted = JobFilter(terms=searching.parse(q, search_fields.JOBS, NOON))
    return db.read_now(lambda conn: facets.facets(conn, wanted).facets)


def test_it_counts_each_value(fleet: Database) -> None:
    found = counted(fleet, "")
    assert found == {
        "status": {"scheduled": 3},
        "type": {"cron": 2, "manual": 1},
        "service": {"mail": 1},
        "tag": {"nightly": 2, "shop": 1},
        "priority": {"2": 2, "1": 1},
    }


def test_a_field_is_counted_without_its_own_choice(fleet: Database) -> None:
    found = counted(fleet, "tag:shop")
    assert found["tag"] == {"nightly": 2, "shop": 1}
    assert found["type"] == {"cron": 1}
    assert counted(fleet, "-tag:shop")["tag"] == {"nightly": 1}


def test_of_many_jobs_the_newest_are_counted_and_it_says_so(
    fleet: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facets, "STRETCH", 2)
    found = fleet.read_now(lambda conn: facets.facets(conn, JobFilter()))
    assert found.least == set(facets.FIELDS)
    assert found.facets["type"] == {"cron": 1, "manual": 1}, "the first one was made before both"
    manual = JobFilter(terms=searching.parse("type:manual", search_fields.JOBS, NOON))
    found = fleet.read_now(lambda conn: facets.facets(conn, manual))
    assert found.least == {"type"}, "all that match were counted; of all types only the newest"
    assert found.facets["priority"] == {"2": 1}


def test_what_a_search_finds_is_known_by_its_ids(fleet: Database) -> None:
    def look(q: str, most: int) -> tuple[JobFilter, bool]:
        wanted = JobFilter(terms=searching.parse(q, search_fields.JOBS, NOON))
        return fleet.read_now(lambda conn: jobs.some(conn, wanted, most))

    def names(wanted: JobFilter) -> list[str]:
        return [job.name for job in fleet.read_now(lambda conn: jobs.find(conn, wanted)).items]

    nightly = JobFilter(terms=searching.parse("tag:nightly", search_fields.JOBS, NOON))
    found, whole = look("tag:nightly", 2)
    assert (names(found), whole) == (names(nightly), True)
    found, whole = look("tag:nightly", 1)
    assert (len(names(found)), whole) == (1, False)
    assert set(names(found)) < set(names(nightly))
    found, whole = look("tag:gone", 2)
    assert (names(found), whole) == ([], True), "nothing, and not everything"


def test_a_row_that_cannot_be_read_harms_nobody(sqlite_db: Database) -> None:
    add(sqlite_db, a_job(tags=("nightly",)), bad := a_job())
    broken = job_table.update().where(job_table.c.id == bad.id)
    sqlite_db.write_now(lambda conn: conn.execute(broken.values(tags=text("'{oops'"))))
    assert counted(sqlite_db, "")["tag"] == {"nightly": 1}
