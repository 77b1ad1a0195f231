"""Figures out of the history: what is counted, how long it took, on which day."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from noonday.domain.execution import Execution, ExecutionId, ExecutionState, SkipReason
from noonday.domain.job import Job, JobState
from noonday.domain.target import ServiceTarget
from noonday.ids import first_id, new_id
from noonday.store import executions, jobs, statistics
from noonday.store.database import Database
from noonday.store.execution_rows import settled_values
from noonday.store.statistics import Counts, Scope
from noonday.store.tables import executions as table
from tests.factories import NOON, a_job, an_execution

SECOND = timedelta(seconds=1)


def keep(db: Database, *runs: Execution) -> None:
    """As rows of the history."""

    def work(conn: Any) -> None:
        executions.plan(conn, runs)
        for run in runs:
            conn.execute(table.update().where(table.c.id == run.id).values(settled_values(run)))

    db.write_now(work)


def a_run(job: Job, due: datetime = NOON, took: float | None = 1, **changes: Any) -> Execution:
    """One that was completed, unless told otherwise."""
    changes = {"state": ExecutionState.COMPLETED, "attempt": 1} | changes
    if took is not None:
        changes |= {"started_at": due, "completed_at": due + took * SECOND}
    made_id = ExecutionId(new_id(due - 2 * SECOND))
    return an_execution(job=job, id=made_id, scheduled_for=due, created_at=due - 2 * SECOND, **changes)


@pytest.fixture
def job(db: Database) -> Job:
    return db.write_now(lambda conn: jobs.add(conn, a_job(name="crawl", next_run_at=NOON)))


def test_it_counts_runs_and_skipped_instants(db: Database, job: Job) -> None:
    lapse = an_execution(
        job=job,
        id=ExecutionId(new_id(NOON)),
        scheduled_for=NOON - 50 * SECOND,
        state=ExecutionState.SKIPPED,
        skip_reason=SkipReason.PAUSED,
        skipped_count=40,
        available_at=None,
    )
    single = replace(lapse, id=ExecutionId(new_id(NOON)), scheduled_for=NOON - 5 * SECOND, skipped_count=0)
    keep(
        db,
        *(a_run(job, NOON + n * SECOND) for n in range(3)),
        a_run(job, NOON + 3 * SECOND, state=ExecutionState.FAILED, took=100),
        a_run(job, NOON + 4 * SECOND, state=ExecutionState.CANCELLED),
        a_run(job, NOON + 5 * SECOND, state=ExecutionState.RUNNING, took=None, started_at=NOON),
        a_run(job, NOON + 6 * SECOND, state=ExecutionState.QUEUED, took=None),
        a_run(job, NOON + 7 * SECOND, state=ExecutionState.PENDING, took=None),
        lapse,
        single,
    )
    found = db.read_now(lambda conn: statistics.tally(conn, Scope(job_id=job.id)))
    assert found.counts == Counts(completed=3, failed=1, cancelled=1, skipped=41, running=1, waiting=2)
    assert (found.counts.total, found.counts.success_rate) == (6, 0.75)
    assert not found.partial


def test_it_measures_completed_runs_alone(db: Database, job: Job) -> None:
    runs = [a_run(job, NOON + n * SECOND, took=n) for n in range(1, 101)]
    keep(db, *runs, a_run(job, state=ExecutionState.FAILED, took=5000))
    found = db.read_now(lambda conn: statistics.tally(conn, Scope(job_id=job.id)))
    assert found.durations is not None
    seen = [getattr(found.durations, name) for name in ("average", "p50", "p95", "p99", "max")]
    assert [round(span.total_seconds(), 2) for span in seen] == [50.5, 50, 95, 99, 100]
    usual = db.read_now(lambda conn: statistics.usual_durations(conn, [job.id]))
    assert round(usual[job.id].total_seconds(), 2) == 50.5


def test_it_finds_nothing_in_nothing(db: Database, job: Job) -> None:
    found = db.read_now(lambda conn: statistics.tally(conn, Scope(job_id=job.id)))
    assert (found.counts, found.durations, found.days) == (Counts(), None, ())
    assert found.counts.success_rate is None
    assert db.read_now(lambda conn: statistics.last_run(conn, Scope(job_id=job.id))) is None
    assert db.read_now(lambda conn: statistics.usual_durations(conn, [job.id])) == {}


def test_it_puts_each_run_on_the_day_it_was_due(db: Database, job: Job) -> None:
    midnight = NOON.replace(hour=0)
    keep(
        db,
        a_run(job, midnight, took=4),  # planned on the day before
        a_run(job, midnight - SECOND, took=2),  # ended on the day after
        a_run(job, midnight + SECOND, took=2),
        a_run(job, midnight + 2 * SECOND, state=ExecutionState.FAILED, took=90),
    )
    found = db.read_now(lambda conn: statistics.tally(conn, Scope(job_id=job.id)))
    assert [(one.day, one.counts.completed, one.counts.failed) for one in found.days] == [
        (date(2026, 12, 31), 1, 0),
        (date(2027, 1, 1), 2, 1),
    ]
    assert [round(one.average.total_seconds(), 2) for one in found.days if one.average] == [2, 3]
    since = db.read_now(lambda conn: statistics.tally(conn, Scope(since=midnight)))
    assert since.counts.completed == 2


def test_it_looks_at_one_job_at_a_service_or_at_all(db: Database, job: Job) -> None:
    target = ServiceTarget(service="email", endpoint="/x")
    soon = NOON + 9 * SECOND
    mail = db.write_now(lambda conn: jobs.add(conn, a_job(target=target, next_run_at=soon)))
    keep(db, a_run(job), a_run(mail, NOON + SECOND), a_run(mail, NOON + 2 * SECOND, took=None))

    def completed(scope: Scope) -> int:
        return db.read_now(lambda conn: statistics.tally(conn, scope)).counts.completed

    hour_ago = NOON - timedelta(hours=1)
    assert completed(Scope(since=hour_ago)) == completed(Scope()) == 3
    assert completed(Scope(service="email", since=hour_ago)) == completed(Scope(job_id=mail.id)) == 2
    assert completed(Scope(service="sms")) == 0
    last = db.read_now(lambda conn: statistics.last_run(conn, Scope(service="email")))
    assert last is not None
    assert last.scheduled_for == NOON + SECOND
    assert db.read_now(lambda conn: statistics.job_states(conn, "email")) == {JobState.SCHEDULED: 1}
    assert db.read_now(statistics.job_states) == {JobState.SCHEDULED: 2}
    assert db.read_now(statistics.next_run_at) == NOON
    assert db.read_now(lambda conn: statistics.next_run_at(conn, "email")) == soon
    assert db.read_now(lambda conn: statistics.next_run_at(conn, "sms")) is None


def test_it_says_when_it_counted_the_newest_alone(
    db: Database, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(db, *(a_run(job, NOON + n * SECOND, took=n) for n in range(1, 6)))
    for most, cut in ((5, False), (3, True)):
        monkeypatch.setattr(statistics, "NEWEST", most)
        for scope in (Scope(job_id=job.id), Scope()):
            found = db.read_now(partial(statistics.tally, scope=scope))
            assert (found.counts.completed, found.partial) == (most, cut)
            assert found.durations is not None
            assert round(found.durations.max.total_seconds()) == 5  # the newest, not the oldest


def test_it_measures_the_newest_and_counts_them_all(
    db: Database, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(db, *(a_run(job, NOON + n * SECOND, took=10 - n) for n in range(1, 6)))
    monkeypatch.setattr(statistics, "MEASURED", 2)
    for scope in (Scope(job_id=job.id), Scope()):
        found = db.read_now(partial(statistics.tally, scope=scope))
        assert (found.counts.completed, found.partial) == (5, False)
        assert found.durations is not None
        assert round(found.durations.max.total_seconds()) == 6


def test_it_takes_a_clock_that_was_set_back_for_no_time_at_all(db: Database, job: Job) -> None:
    keep(db, a_run(job, took=-5))
    found = db.read_now(lambda conn: statistics.tally(conn, Scope(job_id=job.id)))
    assert found.durations is not None
    assert found.durations.p50 == timedelta()


def test_ids_of_a_moment_are_not_below_its_first_one() -> None:
    assert first_id(NOON) <= new_id(NOON) < first_id(NOON + SECOND)
