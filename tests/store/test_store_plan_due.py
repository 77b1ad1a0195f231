"""What the planner writes in one go: the runs and the lapses of due jobs, and their cursors."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from noonday.domain.execution import Cause, Execution, ExecutionId, ExecutionState, Road, SkipReason
from noonday.domain.job import Job, JobId, Lane
from noonday.domain.plans import Fire, Lapse, Plan
from noonday.ports import Parcel, Pledge
from noonday.store import executions, history, jobs, notices
from noonday.store.database import Database
from noonday.store.planning import Planned
from tests.factories import NOON, a_job, an_execution
from tests.store.store_steps import MINUTE, SECOND, add, job_now, plan, sql


def fires(*minutes: int, late: timedelta = timedelta()) -> tuple[Fire, ...]:
    dues = [NOON + n * MINUTE for n in minutes]
    return tuple(Fire(scheduled_for=due, available_at=due + late, covers_from=due - MINUTE) for due in dues)


def a_plan(*made: Fire, next_run_at: datetime | None = None, lapses: tuple[Lapse, ...] = ()) -> Plan:
    return Plan(fires=made, lapses=lapses, next_run_at=next_run_at, fire_count=len(made))


def write(db: Database, plans: dict[JobId, Plan], fed: Collection[Lane] = ()) -> Planned:
    def work(conn: Connection) -> Planned:
        found = [(one, plans[one.job.id]) for one in jobs.due(conn, NOON + timedelta(days=1))]
        return executions.plan_due(conn, found, NOON, fed)

    return db.write_now(work)


def due_job(**changes: Any) -> Job:
    return a_job(next_run_at=NOON, **changes)


def runs(db: Database, job: Job) -> list[Execution]:
    """By their time."""
    found = db.read_now(lambda conn: history.page(conn, job.id, 100, 0)).items
    return sorted(found, key=lambda one: one.scheduled_for)


def counts(db: Database, job: Job) -> dict[str, object]:
    (row,) = sql(db, f"SELECT fire_count, execution_count, row_count FROM jobs WHERE id = '{job.id}'")
    return row


def test_a_fire_becomes_a_run_with_all_that_it_needs(db: Database) -> None:
    job = due_job(lane=Lane.HIGH, scheduler_version=2)
    add(db, job)
    made = write(db, {job.id: a_plan(*fires(0, late=SECOND), next_run_at=NOON + MINUTE)})
    assert made == (1, [])
    (run,) = runs(db, job)
    assert run == Execution(
        id=run.id,
        job_id=job.id,
        cause=Cause.SCHEDULE,
        scheduled_for=NOON,
        available_at=NOON + SECOND,
        state=ExecutionState.QUEUED,
        lane=Lane.HIGH,
        number=1,
        covers_from=NOON - MINUTE,
        created_at=NOON,
        road=Road.STREAMS,
    )
    assert job_now(db, job).next_run_at == NOON + MINUTE
    assert counts(db, job) == {"fire_count": 1, "execution_count": 1, "row_count": 1}


def test_runs_of_many_jobs_are_numbered_per_job(db: Database) -> None:
    few, many, none = due_job(lane=Lane.LOW), due_job(), due_job()
    add(db, few, many, none)
    plan(db, an_execution(job=many, scheduled_for=NOON - MINUTE))
    later = NOON + timedelta(hours=1)
    plans = {
        few.id: a_plan(*fires(0)),
        many.id: a_plan(*fires(0, 1, 2), next_run_at=later),
        none.id: a_plan(next_run_at=later + MINUTE),
    }
    assert write(db, plans).rows == 4
    assert [(run.number, run.lane) for run in runs(db, few)] == [(1, Lane.LOW)]
    assert [(run.number, run.lane) for run in runs(db, many)] == [(n, Lane.NORMAL) for n in (1, 2, 3, 4)]
    assert [run.covers_from for run in runs(db, many)[1:]] == [NOON + n * MINUTE for n in (-1, 0, 1)]
    assert runs(db, none) == []
    cursors = {job.id: job_now(db, job).next_run_at for job in (few, many, none)}
    assert cursors == {few.id: None, many.id: later, none.id: later + MINUTE}
    assert counts(db, few) == {"fire_count": 1, "execution_count": 1, "row_count": 1}
    assert counts(db, many) == {"fire_count": 3, "execution_count": 4, "row_count": 4}
    assert counts(db, none) == {"fire_count": 0, "execution_count": 0, "row_count": 0}


def test_jobs_whose_plans_are_alike_move_on_together(db: Database) -> None:
    alike = [due_job() for _ in range(3)]
    add(db, *alike)
    assert write(db, {job.id: a_plan(*fires(0)) for job in alike}).rows == 3
    assert len({run.id for job in alike for run in runs(db, job)}) == 3
    for job in alike:
        assert job_now(db, job).next_run_at is None
        assert counts(db, job) == {"fire_count": 1, "execution_count": 1, "row_count": 1}


def test_a_slot_that_is_taken_leaves_a_gap_in_the_numbers(db: Database) -> None:
    job = due_job()
    add(db, job)
    plan(db, an_execution(job=job, scheduled_for=NOON + MINUTE))
    assert write(db, {job.id: a_plan(*fires(0, 1, 2))}).rows == 2
    assert [run.number for run in runs(db, job)] == [2, 1, 4]


def test_lapses_are_kept_beside_the_runs_and_counted(db: Database) -> None:
    told: list[tuple[JobId, SkipReason, int]] = []
    db.count_skips = lambda job_id, reason, count: told.append((job_id, reason, count))
    missed, paused = due_job(), due_job()
    add(db, missed, paused)
    lapse = Lapse(
        scheduled_for=NOON - 7 * MINUTE,
        through_at=NOON - MINUTE,
        count=7,
        reason=SkipReason.MISFIRE,
        detail="too late",
    )
    bare = Lapse(scheduled_for=NOON, through_at=NOON, count=1, reason=SkipReason.WINDOW)
    plans = {missed.id: a_plan(*fires(0), lapses=(lapse,)), paused.id: a_plan(lapses=(bare,))}
    assert write(db, plans).rows == 3
    kept, run = runs(db, missed)
    assert (kept.state, kept.number, kept.skipped_count, kept.through_at, kept.detail) == (
        ExecutionState.SKIPPED,
        0,
        7,
        NOON - MINUTE,
        "too late",
    )
    assert (run.state, run.number) == (ExecutionState.QUEUED, 1)
    assert [one.skip_reason for one in runs(db, paused)] == [SkipReason.WINDOW]
    assert sorted(told) == sorted([(missed.id, SkipReason.MISFIRE, 7), (paused.id, SkipReason.WINDOW, 1)])
    assert counts(db, missed) == {"fire_count": 1, "execution_count": 1, "row_count": 2}
    assert counts(db, paused) == {"fire_count": 0, "execution_count": 0, "row_count": 1}


def test_what_takes_the_streams_is_pledged_in_the_lanes_that_are_fed(db: Database) -> None:
    streams, full = due_job(scheduler_version=2), due_job(scheduler_version=2, lane=Lane.LOW)
    rows = due_job(scheduler_version=1)
    add(db, streams, full, rows)
    plans = {job.id: a_plan(*fires(0, 1, late=SECOND)) for job in (streams, full, rows)}
    made = write(db, plans, {Lane.NORMAL, Lane.HIGH})
    assert made.rows == 6
    pledged = runs(db, streams)
    assert made.pledges == [
        Pledge(run.scheduled_for + SECOND, Parcel(Lane.NORMAL, run.id)) for run in pledged
    ]
    marked = sql(db, "SELECT id FROM executions WHERE enqueued_at IS NOT NULL")
    assert {row["id"] for row in marked} == {run.id for run in pledged}


@pytest.mark.parametrize("count", [0, 1])
def test_workers_are_told_if_there_is_something_new(db: Database, count: int) -> None:
    job = due_job()
    add(db, job)

    def work(conn: Connection) -> bool:
        (due,) = jobs.due(conn, NOON)
        executions.plan_due(conn, [(due, a_plan(*fires(0)[:count]))], NOON)
        return notices.WORK in notices.told(conn)

    assert db.write_now(work) is bool(count)


@pytest.mark.parametrize(
    ("versions", "told"), [([2], {notices.PLEDGED}), ([2, 1], {notices.WORK}), ([1], {notices.WORK})]
)
def test_what_comes_by_the_streams_alone_is_told_apart(
    db: Database, versions: list[int], told: set[str]
) -> None:
    made = [due_job(scheduler_version=version) for version in versions]
    add(db, *made)

    def work(conn: Connection) -> Collection[str]:
        plans = [(due, a_plan(*fires(0))) for due in jobs.due(conn, NOON)]
        assert executions.plan_due(conn, plans, NOON, {Lane.NORMAL}).rows == len(versions)
        return notices.told(conn)

    assert db.write_now(work) == told


def test_planning_nothing_is_nothing(db: Database) -> None:
    assert db.write_now(lambda conn: executions.plan_due(conn, [], NOON)) == (0, [])


def test_a_second_planner_meets_taken_slots(db: Database) -> None:
    """As one that was thought dead and still commits."""
    job = due_job()
    add(db, job)
    made = {job.id: a_plan(*fires(0, 1), next_run_at=NOON + MINUTE)}
    assert write(db, made).rows == 2
    assert write(db, made).rows == 0
    assert [run.number for run in runs(db, job)] == [1, 2]
    assert ExecutionId(runs(db, job)[0].id) < ExecutionId(runs(db, job)[1].id)
