"""Jobs read by the thousand, with what is alike in them read once: as if each were read by itself."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import date, time, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, select

from noonday.domain.calendar import Availability, Calendar, Outside, Window
from noonday.domain.job import (
    CatchUp,
    Job,
    JobId,
    JobState,
    Lane,
    MisfirePolicy,
    OnLost,
    Overlap,
    OverlapPolicy,
    Retention,
    RetryPolicy,
    Trigger,
)
from noonday.domain.schedule import Cron, Event, Frequency, Immediate, Interval, IntervalUnit, Manual, Once
from noonday.domain.target import CommandTarget, FetchTarget, HttpTarget, PythonTarget, ServiceTarget
from noonday.store import jobs
from noonday.store.database import Database
from noonday.store.definitions import KEPT, jobs_of
from noonday.store.quick_rows import DEFINED
from noonday.store.reading import RowError
from noonday.store.rows import KEPT_FIELDS
from tests.factories import NOON, a_job, a_timing, an_id
from tests.store.store_steps import MINUTE, add, sql

OFFICE = Window(days=frozenset({1, 3}), start=time(8), end=time(18, 30))
CLOSED = Calendar(excluded_dates=frozenset({date(2027, 1, 6)}), holidays_of="DE-BY")
TIMINGS = [
    a_timing(Once(run_at=NOON + MINUTE)),
    a_timing(Once(run_at=NOON + 2 * MINUTE), anchor_at=NOON - MINUTE),
    a_timing(Immediate()),
    a_timing(Manual()),
    a_timing(Event()),
    a_timing(Cron(expression="H 3 * * *"), timezone="Europe/Berlin", max_runs=7),
    a_timing(Interval(count=90, unit=IntervalUnit.SECONDS), start_at=NOON, end_at=NOON + MINUTE),
    a_timing(Interval(count=2, after_completion=True), jitter=timedelta(seconds=1.5)),
    a_timing(Frequency(frequency="weekly", day=7, hour=3, minute=5)),
    a_timing(availability=Availability(windows=(OFFICE,), calendar=CLOSED, outside=Outside.MOVE)),
]
CHANGES: list[dict[str, Any]] = [
    {"target": PythonTarget(task="count", args=(1, "two"), kwargs={"deep": {"er": [None]}})},
    {"target": FetchTarget(url="https://example.org/a")},
    {"target": FetchTarget(url="https://example.org/b")},
    {"target": FetchTarget(url="https://example.org/b", headers={"accept": "text/plain"})},
    {"target": HttpTarget(url="https://example.org/c", method="PUT", expected_status=(200, 204))},
    {"target": ServiceTarget(service="mail", endpoint="/send")},
    {"target": CommandTarget(argv=("true", "--quite"))},
    {"tags": ("a", "b"), "description": "[]", "source_id": "{}", "config": {"n": 1}, "metadata": {"m": [2]}},
    {"misfire": MisfirePolicy(grace=timedelta(seconds=0.5), coalesce=False, catch_up=CatchUp.ALL)},
    {"overlapping": OverlapPolicy(max_instances=4, overlap=Overlap.QUEUE_ONE)},
    {"retry": RetryPolicy(max_retries=0, backoff=timedelta(hours=1), jitter=True, on_lost=OnLost.FAIL)},
    {"retention": Retention(runs=3, days=9), "trigger": Trigger(webhook="/hook", channel="news")},
    {"depends_on": (JobId(an_id()),), "on_success_of": (JobId(an_id()), JobId(an_id()))},
    {"lane": Lane.LOW, "timeout": timedelta(seconds=2.5), "scheduler_version": 2},
    {"state": JobState.PAUSED, "paused": True, "paused_until": NOON + MINUTE, "skipped_through": NOON},
    {"enabled": False, "next_run_at": NOON, "last_run_at": NOON - MINUTE, "last_status": "failed"},
    {"fire_count": 12, "retry_count": 2, "revision": 5, "updated_at": NOON + MINUTE, "created_at": NOON},
]


def read(db: Database) -> dict[str, Job | RowError]:
    def look(conn: Connection) -> dict[str, Job | RowError]:
        return jobs_of(conn, conn.execute(select(*KEPT)).all())

    return db.read_now(look)


def test_all_of_a_job_is_either_defined_or_kept() -> None:
    assert {*DEFINED, *KEPT_FIELDS.values()} == {field.name for field in fields(Job)}
    assert {*DEFINED}.intersection(KEPT_FIELDS.values()) == {"id"}


def test_a_job_among_many_is_read_as_if_it_were_alone(db: Database) -> None:
    made = [a_job(timing=timing) for timing in TIMINGS] + [a_job(**changes) for changes in CHANGES]
    made += [replace(job, id=JobId(an_id()), name=f"{job.name} again") for job in made]
    add(db, *made)
    for _ in range(2):  # from the rows, and then from memory
        found = read(db)
        assert found == {job.id: job for job in made}
        assert all(isinstance(job, Job) and type(job.lane) is Lane for job in found.values())
    assert found == {job.id: db.read_now(lambda conn, i=job.id: jobs.get(conn, i)) for job in made}  # type: ignore[misc]


def test_what_one_job_has_is_not_another_ones(db: Database) -> None:
    """Whoever wrote the task may change what it is given."""
    target = PythonTarget(task="count", args=([1],), kwargs={"n": {}})
    one, two = a_job(target=target), a_job(target=target)
    add(db, one, two)
    found = read(db)
    first, second = found[one.id], found[two.id]
    assert isinstance(first, Job)
    assert isinstance(second, Job)
    assert first.config is not second.config
    assert first.metadata is not second.metadata
    assert isinstance(first.target, PythonTarget)
    assert isinstance(second.target, PythonTarget)
    assert first.target.args[0] is not second.target.args[0]
    assert first.target.kwargs["n"] is not second.target.kwargs["n"]


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("tags", "'{}'"),
        ("config", "'[]'"),
        ("metadata", "'7'"),
        ("target", '\'{"type": "tea"}\''),
        ("overlap", "'sometimes'"),
        ("timezone", "'Mars/Olympus'"),
        ("depends_on", "'{}'"),
        ("priority", "9"),
        ("status", "'confused'"),
    ],
)
def test_a_row_that_cannot_be_read_says_why_and_harms_itself_alone(
    db: Database, column: str, value: str
) -> None:
    good, bad = a_job(), a_job()
    add(db, good, bad)
    sql(db, f"UPDATE jobs SET {column} = {value} WHERE id = '{bad.id}'")
    for _ in range(2):
        found = read(db)
        assert found[good.id] == good
        told = found[bad.id]
        assert isinstance(told, RowError)
        assert value.strip("'").split('"')[-2 if '"' in value else 0] in str(told)


@pytest.mark.parametrize(
    "column", ["run_at", "anchor_at", "created_at", "end_at", "last_run_at", "updated_at"]
)
def test_on_sqlite_an_instant_that_is_none_names_its_column(sqlite_db: Database, column: str) -> None:
    job = a_job(schedule=Once(run_at=NOON))
    add(sqlite_db, job)
    sql(sqlite_db, f"UPDATE jobs SET {column} = 'soon', revision = revision + 1")
    told = read(sqlite_db)[job.id]
    assert isinstance(told, RowError)
    assert column in str(told)
    assert "soon" in str(told)


def test_a_change_is_seen_at_once_even_if_its_revision_was_given_before(db: Database) -> None:
    job = a_job(description="old")
    add(db, job)
    assert read(db)[job.id] == job
    sql(db, "UPDATE jobs SET description = 'new', revision = revision + 1, dirty = false")
    changed = replace(job, description="new", revision=job.revision + 1)
    assert read(db)[job.id] == changed
    # as after a roll-back: the same revision, made at another time
    later = (NOON + MINUTE).isoformat(" ")[:19]
    sql(db, f"UPDATE jobs SET revision = revision + 1, description = 'newer', updated_at = '{later}'")
    sql(db, "UPDATE jobs SET revision = revision - 1")
    assert read(db)[job.id] == replace(changed, description="newer", updated_at=NOON + MINUTE)
