"""The tables under plain SQL, as people and older services write it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy.exc import SQLAlchemyError

from noonday.domain.job import Job, JobState, RetryPolicy
from noonday.domain.outcome import Completed, Result, Usage
from noonday.domain.schedule import (
    Cron,
    Event,
    Frequency,
    Interval,
    IntervalUnit,
    Manual,
    Once,
    Schedule,
)
from noonday.domain.target import FetchTarget, HttpTarget, ServiceTarget
from noonday.store import jobs
from noonday.store.database import Database
from noonday.store.jobs import BadRow
from tests.factories import NOON, a_job, an_id
from tests.store.store_steps import BAD, MINUTE, add, claim, job_now, plan_run, run, sql


def changed(db: Database) -> list[Job | BadRow]:
    return db.write_now(jobs.changed)


def test_an_inserted_row_is_a_job(db: Database) -> None:
    job_id = an_id()
    sql(
        db,
        f"INSERT INTO jobs (id, url, interval_minutes, interval_type) "
        f"VALUES ('{job_id}', 'https://a.example', 6, 'hours')",
    )
    (job,) = changed(db)
    assert isinstance(job, Job)
    assert job.id == job_id
    assert job.name == job_id
    assert job.timing.schedule == Interval(count=6, unit=IntervalUnit.HOURS)
    assert job.target == FetchTarget(url="https://a.example")
    assert (job.state, job.enabled, job.paused) == (JobState.PENDING, True, False)
    assert job.timeout == timedelta(hours=1)
    assert job.retry == RetryPolicy()
    assert job.timing.anchor_at == job.created_at
    assert job.created_at.tzinfo is not None
    saved = db.write_now(lambda conn: jobs.save(conn, job))
    assert job_now(db, saved.id) == saved
    assert changed(db) == []


def test_even_the_id_may_be_left_out(db: Database) -> None:
    sql(db, "INSERT INTO jobs (url, cron_expression) VALUES ('https://a.example', '@daily')")
    sql(db, "INSERT INTO jobs (url, cron_expression) VALUES ('https://b.example', '@daily')")
    found = changed(db)
    assert len({job.id for job in found}) == 2
    assert all(len(job.id) == 36 for job in found)


COLUMNS: list[tuple[str, str, Schedule]] = [
    ("cron_expression", "'0 2 * * *'", Cron(expression="0 2 * * *")),
    ("schedule_time", "'0 2 * * *'", Cron(expression="0 2 * * *")),
    ("interval_minutes", "30", Interval(count=30)),
    ("interval_minutes, schedule_time", "30, '0 2 * * *'", Interval(count=30)),
    ("interval_minutes, interval_type", "2, 'days'", Interval(count=2, unit=IntervalUnit.DAYS)),
    (
        "frequency, time_config",
        """'weekly', '{"day": "tuesday", "hour": 2, "minute": 5}'""",
        Frequency(frequency="weekly", day=2, hour=2, minute=5),
    ),
    ("frequency, time_config", """'daily', '{"hour": 2}'""", Frequency(frequency="daily", hour=2)),
    (
        "frequency, time_config",
        """'cron', '{"cron_expression": "0 3 * * *"}'""",
        Cron(expression="0 3 * * *"),
    ),
    (
        "schedule_type, run_at",
        "'once', '2027-06-01 10:00:00+02:00'",
        Once(run_at=NOON.replace(month=6, hour=8)),
    ),
    ("run_at", "'2027-06-01T08:00:00Z'", Once(run_at=NOON.replace(month=6, hour=8))),
    ("trigger_webhook", "'/sources/*/crawl'", Event()),
    ("source_id", "'s-1'", Manual()),
    ("schedule_type, cron_expression", "'interval', '0 2 * * *'", Cron(expression="0 2 * * *")),
]


@pytest.mark.parametrize(("columns", "values", "schedule"), COLUMNS, ids=[c[0] + c[1] for c in COLUMNS])
def test_the_columns_say_when(db: Database, columns: str, values: str, schedule: Schedule) -> None:
    sql(db, f"INSERT INTO jobs (url, {columns}) VALUES ('https://a.example', {values})")
    (job,) = changed(db)
    assert isinstance(job, Job), job
    assert job.timing.schedule == schedule


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("interval_minutes = 0, schedule_type = 'interval'", "interval_minutes"),
        ("schedule_type = 'interval', cron_expression = NULL", "schedule_type"),
        ("schedule_type = 'sometimes', cron_expression = NULL", "sometimes"),
        ("cron_expression = '61 * * * *'", "61"),
        ("frequency = 'yearly', schedule_type = 'calendar', cron_expression = NULL", "yearly"),
        ("priority = 9", "9"),
        ("tags = '{}'", "tags"),
        ("""windows = '[{"days": ["someday"], "start": "08:00", "end": "09:00"}]'""", "someday"),
        ("""target = '{"type": "telepathy"}'""", "telepathy"),
        ("""target = '{"type": "python"}', url = NULL""", "task"),
        ("timeout_seconds = 1e300", "OverflowError"),
    ],
)
def test_a_wrong_value_is_told_and_harms_its_job_alone(db: Database, change: str, words: str) -> None:
    add(db, a_job())
    sql(db, "INSERT INTO jobs (url, cron_expression) VALUES ('https://a.example', '0 2 * * *')")
    sql(db, f"UPDATE jobs SET {change} WHERE url IS NOT NULL")
    (bad,) = changed(db)
    assert isinstance(bad, BadRow)
    assert words in bad.error
    assert db.read_now(jobs.find).total == 2


def test_text_that_is_no_json_harms_its_job_alone(sqlite_db: Database) -> None:
    """PostgreSQL does not let it in."""
    add(sqlite_db, a_job(tags=("x",)))
    sql(
        sqlite_db,
        "INSERT INTO jobs (url, tags, config, created_at) VALUES ('u', 'not json', '{', 'yesterday')",
    )
    (bad,) = changed(sqlite_db)
    assert isinstance(bad, BadRow)
    assert len(sqlite_db.read_now(jobs.find).items) == 1
    assert sqlite_db.read_now(lambda conn: jobs.find(conn, jobs.JobFilter(tag="x"))).total == 1


@pytest.mark.parametrize(
    "change",
    [
        "cron_expression = '5 5 * * *'",
        "is_paused = true",
        "schedule_enabled = false",
        "config = '{\"n\": 1}'",
        "timezone = 'Europe/Berlin'",
        "max_retries = 9",
    ],
)
def test_an_update_is_noticed_and_raises_the_revision(db: Database, change: str) -> None:
    job = a_job()
    add(db, job)
    sql(db, f"UPDATE jobs SET {change} WHERE id = '{job.id}'")
    (found,) = changed(db)
    assert isinstance(found, Job)
    assert found.revision == job.revision + 1
    assert found.updated_at != job.updated_at


def test_an_update_that_changes_nothing_is_not_noticed(db: Database) -> None:
    job = a_job()
    add(db, job)
    sql(db, "UPDATE jobs SET cron_expression = cron_expression, config = config")
    assert changed(db) == []
    assert job_now(db, job) == job


def test_a_second_change_before_the_first_was_seen_is_noticed_too(db: Database) -> None:
    add(db, a_job())
    sql(db, "UPDATE jobs SET max_retries = 1")
    sql(db, "UPDATE jobs SET max_retries = 2")
    (found,) = changed(db)
    assert isinstance(found, Job)
    assert (found.retry.max_retries, found.revision) == (2, 3)


def test_a_job_moves_to_the_other_engine(db: Database) -> None:
    job = a_job()
    add(db, job)
    sql(db, f"UPDATE jobs SET scheduler_version = 2 WHERE id = '{job.id}'")
    assert job_now(db, job).scheduler_version == 2


def test_the_url_column_is_the_truth(db: Database) -> None:
    add(db, a_job(target=HttpTarget(url="https://a.example", method="PUT")))
    sql(db, "UPDATE jobs SET url = 'https://b.example'")
    (found,) = changed(db)
    assert isinstance(found, Job)
    assert found.target == HttpTarget(url="https://b.example", method="PUT")


def test_a_deleted_job_is_deleted_with_what_was_planned(db: Database) -> None:
    job = a_job(depends_on=())
    add(db, job)
    plan_run(db, job)
    sql(db, f"DELETE FROM jobs WHERE id = '{job.id}'")
    assert claim(db) == []
    assert sql(db, "SELECT status FROM job_executions") == [{"status": "cancelled"}]


def test_what_the_seeds_print_works(db: Database) -> None:
    job = a_job(schedule=Interval(count=6, unit=IntervalUnit.HOURS))
    add(db, job, a_job(), a_job(enabled=False))
    run(db, job)
    assert sql(db, "SELECT COUNT(*) AS n FROM job_executions") == [{"n": 1}]
    assert sql(db, "SELECT COUNT(*) AS n FROM jobs WHERE interval_minutes IS NOT NULL") == [{"n": 1}]
    assert len(sql(db, "SELECT * FROM schedules WHERE enabled = TRUE")) == 2


def test_the_view_of_executions_speaks_the_old_words(db: Database) -> None:
    job = a_job()
    add(db, job)
    result = Result(
        items_processed=5,
        items_succeeded=4,
        metadata={"m": 1},
        usage=Usage(cpu_time_ms=12, memory_peak_mb=1.5),
    )
    run(db, job, outcome=Completed(result=result))
    (row,) = sql(
        db,
        "SELECT job_id, execution_number, status, duration_ms, items_crawled, items_indexed, cpu_time_ms, "
        "memory_peak_mb, retry_attempt, error_message, stack_trace FROM job_executions",
    )
    assert row == {
        "job_id": job.id,
        "execution_number": 1,
        "status": "completed",
        "duration_ms": 1000,
        "items_crawled": 5,
        "items_indexed": 4,
        "cpu_time_ms": 12,
        "memory_peak_mb": 1.5,
        "retry_attempt": 0,
        "error_message": None,
        "stack_trace": None,
    }


def test_the_view_of_schedules_speaks_the_old_words(db: Database) -> None:
    add(
        db,
        a_job(name="scan", schedule=Frequency(frequency="daily", hour=2), next_run_at=NOON, source_id="d-1"),
    )
    (row,) = sql(db, "SELECT * FROM schedules")
    assert row["domain"] == "scan"
    assert row["domain_config_id"] == "d-1"
    assert row["frequency"] == "daily"
    assert row["next_run"] is not None


def test_the_views_of_the_job_service_speak_its_words(db: Database) -> None:
    target = ServiceTarget(service="email-service", endpoint="/api/jobs/digest")
    job = a_job(
        name="weekly-digest",
        target=target,
        retry=RetryPolicy(max_retries=0),
        metadata={"display_name": "Weekly Digest", "job_type": "email"},
    )
    add(db, job)
    run(db, job)
    run(db, job, NOON + MINUTE, BAD)
    (row,) = sql(
        db,
        "SELECT job_name, display_name, job_type, service, endpoint, total_runs, successful_runs, "
        "failed_runs FROM job_schedules",
    )
    assert row == {
        "job_name": "weekly-digest",
        "display_name": "Weekly Digest",
        "job_type": "email",
        "service": "email-service",
        "endpoint": "/api/jobs/digest",
        "total_runs": 2,
        "successful_runs": 1,
        "failed_runs": 1,
    }
    rows = sql(
        db,
        "SELECT job_name, status, duration_ms, triggered_by, error_message FROM scheduled_jobs "
        "ORDER BY started_at",
    )
    assert [row["status"] for row in rows] == ["completed", "failed"]
    assert rows[1]["error_message"] == "went wrong"
    assert {row["triggered_by"] for row in rows} == {"scheduler"}


@pytest.mark.parametrize("view", ["job_executions", "schedules", "job_schedules", "scheduled_jobs"])
def test_the_views_are_read_only(db: Database, view: str) -> None:
    job = a_job()
    add(db, job)
    run(db, job)
    with pytest.raises(SQLAlchemyError):
        sql(db, f"DELETE FROM {view}")
    assert db.read_now(jobs.find).total == 1
