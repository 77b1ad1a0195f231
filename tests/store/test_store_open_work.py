"""What is open of a job: told by its rows where they are few, by probes of the index where they are many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from noonday.domain.execution import Cause, Execution, ExecutionState, WaitReason
from noonday.domain.job import Job, Overlap, OverlapPolicy
from noonday.store import facts
from noonday.store.database import Database
from noonday.store.facts import NOTHING_OPEN, OpenWork
from tests.factories import NOON, a_job, a_running_execution, an_execution
from tests.store.store_steps import SECOND, add, plan

STATES = (ExecutionState.QUEUED, ExecutionState.PENDING, ExecutionState.RUNNING, ExecutionState.COMPLETED)
CAUSES = (Cause.SCHEDULE, Cause.MANUAL, Cause.ADMIN)
WAITS = (None, WaitReason.OVERLAP, WaitReason.DEPENDENCY)
RUNS = list(product(STATES, CAUSES, WAITS))


def a_run(job: Job, kind: tuple[ExecutionState, Cause, WaitReason | None], place: int) -> Execution:
    state, cause, why = kind
    made = a_running_execution if state is ExecutionState.RUNNING else an_execution
    due = NOON + place * SECOND
    waits = why is not None and state is ExecutionState.PENDING
    run = replace(made(job=job, scheduled_for=due, cause=cause), state=state)
    return replace(run, available_at=None, wait_reason=why) if waits else run


def expected(runs: list[Execution]) -> OpenWork:
    running = [one for one in runs if one.state is ExecutionState.RUNNING]
    waiting = [one for one in runs if one.state in {ExecutionState.QUEUED, ExecutionState.PENDING}]
    return OpenWork(
        running=len(running),
        waiting=bool(waiting),
        forced=any(one.cause in {Cause.MANUAL, Cause.ADMIN} for one in waiting),
        queueing=any(one.wait_reason is WaitReason.OVERLAP for one in waiting),
    )


def both_ways(db: Database, of: Mapping[str, Job], patch: pytest.MonkeyPatch) -> list[dict[str, OpenWork]]:
    told = []
    for few in (1_000, 0):
        with patch.context() as changed:
            changed.setattr(facts, "_FEW", few)
            told.append(db.read_now(lambda conn: facts.open_work(conn, of)))
    return told


@given(data=st.data())
@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # other jobs each time
def test_rows_and_probes_tell_the_same(
    db: Database, monkeypatch: pytest.MonkeyPatch, data: st.DataObject
) -> None:
    policies = (Overlap.SKIP, Overlap.QUEUE_ONE, Overlap.ALLOW)
    made = [a_job(overlapping=OverlapPolicy(overlap=overlap), next_run_at=None) for overlap in policies]
    add(db, *made)
    runs = {}
    for job in made:
        kinds = data.draw(st.lists(st.sampled_from(RUNS), max_size=4))
        runs[job.id] = [a_run(job, kind, place) for place, kind in enumerate(kinds)]
        plan(db, *runs[job.id])
    read, probed = both_ways(db, {job.id: job for job in made}, monkeypatch)
    assert read == {job_id: expected(of) for job_id, of in runs.items()}
    free = made[-1].id
    assert probed.pop(free) == read[free]._replace(running=min(read.pop(free).running, 1))
    assert probed == read


def test_nothing_is_asked_of_no_jobs_and_each_job_gets_an_answer(db: Database) -> None:
    idle = a_job()
    add(db, idle)
    assert db.read_now(lambda conn: facts.open_work(conn, {})) == {}
    assert db.read_now(lambda conn: facts.open_work(conn, {idle.id: idle})) == {idle.id: NOTHING_OPEN}


def test_a_backlog_is_not_read(db: Database) -> None:
    busy, quiet = a_job(), a_job()
    add(db, busy, quiet)
    plan(db, *(an_execution(job=busy, scheduled_for=NOON + timedelta(seconds=n)) for n in range(50)))
    plan(db, an_execution(job=quiet, cause=Cause.MANUAL))
    told = db.read_now(lambda conn: facts.open_work(conn, {busy.id: busy, quiet.id: quiet}))
    assert told == {busy.id: OpenWork(waiting=True), quiet.id: OpenWork(waiting=True, forced=True)}


def test_what_is_planned_ahead_of_a_job_that_goes_on_is_not_read(db: Database) -> None:
    busy, forced = a_job(next_run_at=NOON), a_job(next_run_at=NOON)
    add(db, busy, forced)
    for job in (busy, forced):
        plan(db, *(an_execution(job=job, scheduled_for=NOON + timedelta(seconds=n)) for n in range(50)))
    plan(db, an_execution(job=forced, cause=Cause.MANUAL))
    told = db.read_now(lambda conn: facts.open_work(conn, {busy.id: busy, forced.id: forced}))
    assert told == {busy.id: NOTHING_OPEN, forced.id: OpenWork(waiting=True, forced=True)}
