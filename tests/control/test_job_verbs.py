"""Create, change, cancel, delete, force-run and retry: each with what follows from it and its audit."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text

from noonday.control.errors import Outdated
from noonday.domain.calendar import Availability, Window
from noonday.domain.errors import Conflict, Invalid, MoveRefused, NotFound
from noonday.domain.execution import Cause, ExecutionState, SkipReason
from noonday.domain.job import Job, JobState, Overlap, OverlapPolicy, RetryPolicy
from noonday.domain.outcome import Cancelled, Completed, Failed
from noonday.domain.schedule import Cron, Immediate, Interval, Manual, Once
from noonday.domain.target import HttpTarget
from tests.control.desk import Desk
from tests.factories import NOON, a_timing, at

HOURLY = Cron(expression="0 * * * *")
YESTERDAY = NOON - timedelta(days=1)


async def test_it_arms_a_new_job(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY, state=JobState.PENDING)
    assert (job.state, job.next_run_at) == (JobState.SCHEDULED, at("2027-01-01T13:00"))
    assert await desk.jobs.get(job.name) == job == await desk.jobs.get(job.id)


async def test_it_records_what_the_windows_of_a_new_job_keep_out(desk: Desk) -> None:
    opening = Window(
        days=frozenset({5}), start=at("2027-01-01T15:00").time(), end=at("2027-01-01T16:00").time()
    )
    job = await desk.new(timing=a_timing(HOURLY, availability=Availability(windows=(opening,))))
    assert job.next_run_at == at("2027-01-01T15:00")
    (lapse,) = await desk.history(job)
    assert (lapse.skip_reason, lapse.skipped_count) == (SkipReason.WINDOW, 2)


@pytest.mark.parametrize(
    ("timing", "field"),
    [
        (a_timing(Once(run_at=YESTERDAY)), "run_at"),
        (a_timing(HOURLY, end_at=YESTERDAY), "end_at"),
        (a_timing(HOURLY, end_at=NOON + timedelta(minutes=1)), "end_at"),
        (a_timing(Cron(expression="0 0 30 2 *")), "cron_expression"),
        (a_timing(Interval(count=0)), "interval_minutes"),
        (a_timing(HOURLY, timezone="Europe/Berlim"), "timezone"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
async def test_it_refuses_a_job_that_would_never_run(desk: Desk, timing: object, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        await desk.new(timing=timing)
    assert [problem.field for problem in refused.value.problems] == [field]


async def test_it_refuses_a_name_that_is_taken(desk: Desk) -> None:
    await desk.new(name="digest")
    with pytest.raises(Conflict, match="'digest' is taken"):
        await desk.new(name="digest")
    other = await desk.new(name="other")
    with pytest.raises(Conflict, match="'digest' is taken"):
        await desk.jobs.change(other.id, lambda job: replace(job, name="digest"))


async def test_it_refuses_what_the_vetting_refuses(desk: Desk) -> None:
    def vet(job: Job) -> None:
        raise Invalid()

    desk.jobs._vet = vet
    with pytest.raises(Invalid):
        await desk.new()


async def test_it_changes_only_what_is_still_at_the_revision_that_was_read(desk: Desk) -> None:
    job = await desk.new()
    changed = await desk.jobs.change(job.id, lambda j: replace(j, description="one"), revision=job.revision)
    assert changed.revision == job.revision + 1
    with pytest.raises(Outdated, match=f"revision {changed.revision}, not {job.revision}"):
        await desk.jobs.change(job.id, lambda j: replace(j, description="two"), revision=job.revision)
    with pytest.raises(Outdated):
        await desk.jobs.remove(job.id, revision=job.revision)
    assert (await desk.jobs.get(job.id)).description == "one"


async def test_it_keeps_the_revision_when_nothing_changes(desk: Desk) -> None:
    job = await desk.new()
    assert (await desk.jobs.change(job.id, lambda j: j)).revision == job.revision
    assert [entry.action for entry in await desk.audit(job.id)] == ["create"]


async def test_it_cancels_for_good(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY, overlapping=OverlapPolicy(overlap=Overlap.ALLOW))
    await desk.jobs.force_run(job.id)
    (run,) = await desk.claim()
    waiting = await desk.jobs.force_run(job.id)
    await desk.plan(hours=2)

    cancelled = await desk.jobs.cancel(job.id, "alice")

    assert (cancelled.state, cancelled.next_run_at) == (JobState.CANCELLED, None)
    rows = {e.id: e for e in await desk.history(job)}
    assert rows.keys() == {run.id, waiting.id}
    assert rows[run.id].cancel_requested_by == "alice"
    assert rows[waiting.id].state is ExecutionState.CANCELLED
    await desk.settle(run, Cancelled(by="alice"))
    assert (await desk.jobs.get(job.id)).state is JobState.CANCELLED


async def test_it_does_nothing_more_with_a_cancelled_job(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.jobs.cancel(job.id)
    for verb in (desk.jobs.pause, desk.jobs.resume, desk.jobs.cancel, desk.jobs.force_run, desk.jobs.retry):
        with pytest.raises(MoveRefused, match="is cancelled cannot become"):
            await verb(job.id)
    with pytest.raises(MoveRefused):
        await desk.jobs.change(job.id, lambda j: replace(j, timing=a_timing(Immediate())))
    assert (await desk.jobs.change(job.id, lambda j: replace(j, description="why"))).description == "why"


async def test_it_deletes_a_job_and_cancels_what_is_open(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    desk.advance(seconds=1)
    await desk.jobs.force_run(job.id)
    (run,) = await desk.claim()
    desk.advance(seconds=1)
    await desk.jobs.remove(job.name, "alice")
    with pytest.raises(NotFound, match=job.name):
        await desk.jobs.get(job.name)
    await desk.settle(run, Completed())
    assert await desk.claim() == []
    assert [(e.action, e.actor) for e in await desk.audit(job.id)] == [
        ("create", "alice"),
        ("force-run", "anonymous"),
        ("delete", "alice"),
    ]


async def test_it_forces_a_run_beside_the_schedule(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    run = await desk.jobs.force_run(job.id, "alice", {"limit": 3})
    assert (run.cause, run.triggered_by, run.config) == (Cause.MANUAL, "alice", {"limit": 3})
    pending = await desk.jobs.get(job.id)
    assert (pending.state, pending.next_run_at, pending.revision) == (
        JobState.PENDING,
        job.next_run_at,
        job.revision,
    )
    (claimed,) = await desk.claim()
    assert (claimed.id, claimed.config) == (run.id, {"limit": 3})
    await desk.settle(claimed, Completed())
    assert (await desk.jobs.get(job.id)).state is JobState.SCHEDULED


async def test_it_forces_a_run_of_a_paused_a_disabled_and_a_completed_job(desk: Desk) -> None:
    paused = await desk.new(schedule=HOURLY)
    await desk.jobs.pause(paused.id)
    disabled = await desk.new(schedule=HOURLY, enabled=False)
    done = await desk.new(schedule=Immediate())
    await desk.plan()
    (first,) = await desk.claim()
    await desk.settle(first, Completed())
    for job in (paused, disabled, done):
        await desk.jobs.force_run(job.id)
    runs = await desk.claim()
    assert {run.job_id for run in runs} == {paused.id, disabled.id, done.id}
    for run in runs:
        await desk.settle(run, Completed())
    states = [(await desk.jobs.get(job.id)).state for job in (paused, disabled, done)]
    assert states == [JobState.PAUSED, JobState.SCHEDULED, JobState.COMPLETED]


async def test_it_refuses_to_force_a_run_that_would_only_be_skipped(desk: Desk) -> None:
    job = await desk.new(schedule=Manual())
    await desk.jobs.force_run(job.id)
    with pytest.raises(MoveRefused, match="pending cannot become pending"):
        await desk.jobs.force_run(job.id)
    await desk.claim()
    with pytest.raises(MoveRefused, match="running cannot become pending"):
        await desk.jobs.force_run(job.id)


@pytest.mark.parametrize(
    ("policy", "started"),
    [
        (OverlapPolicy(overlap=Overlap.ALLOW), 1),
        (OverlapPolicy(overlap=Overlap.QUEUE), 0),
        (OverlapPolicy(overlap=Overlap.REPLACE), 0),
        (OverlapPolicy(max_instances=2), 1),
    ],
    ids=["allow", "queue", "replace", "two"],
)
async def test_it_forces_a_run_where_the_policy_has_room(
    desk: Desk, policy: OverlapPolicy, started: int
) -> None:
    job = await desk.new(schedule=Manual(), overlapping=policy)
    await desk.jobs.force_run(job.id)
    await desk.claim()
    await desk.jobs.force_run(job.id)
    assert len(await desk.claim()) == started
    assert (await desk.jobs.get(job.id)).state is JobState.RUNNING


async def test_it_forces_two_runs_within_the_same_moment(desk: Desk) -> None:
    job = await desk.new(schedule=Manual(), overlapping=OverlapPolicy(overlap=Overlap.ALLOW))
    first, second = await desk.jobs.force_run(job.id), await desk.jobs.force_run(job.id)
    assert {run.id for run in await desk.claim()} == {first.id, second.id}


async def test_it_retries_what_failed(desk: Desk) -> None:
    job = await desk.new(schedule=Immediate(), retry=RetryPolicy(max_retries=0))
    with pytest.raises(MoveRefused, match="it has not run yet"):
        await desk.jobs.retry(job.id)
    await desk.plan()
    (run,) = await desk.claim()
    await desk.settle(run, Failed(error="no"))
    assert (await desk.jobs.get(job.id)).state is JobState.FAILED

    await desk.jobs.retry(job.id)

    assert (await desk.jobs.get(job.id)).state is JobState.PENDING
    (again,) = await desk.claim()
    await desk.settle(again, Completed())
    assert (await desk.jobs.get(job.id)).state is JobState.COMPLETED
    with pytest.raises(MoveRefused, match="its last run is completed"):
        await desk.jobs.retry(job.id)


async def test_it_writes_down_who_changed_what(desk: Desk) -> None:
    target = HttpTarget(
        url="https://example.com", headers={"Authorization": "Bearer s3cr3t-1", "X-Team": "a"}
    )
    job = await desk.new(target=target, config={"password": "s3cr3t-1", "size": 1}, schedule=HOURLY)
    desk.advance(minutes=1)

    def edit(old: Job) -> Job:
        return replace(old, description="new", config={"password": "s3cr3t-2", "size": 1})

    await desk.jobs.change(job.id, edit, "bob")
    desk.advance(minutes=1)
    await desk.jobs.pause(job.id, "carol")

    created, changed, paused = await desk.audit(job.id)
    assert (created.actor, created.action, created.before) == ("alice", "create", None)
    assert created.after is not None
    assert created.after["target"]["headers"] == {"Authorization": "********", "X-Team": "a"}
    assert (changed.actor, changed.at) == ("bob", NOON + timedelta(minutes=1))
    assert changed.before == {
        "description": "",
        "config": {"password": "********", "size": 1},
        "revision": 1,
    }
    assert changed.after == {
        "description": "new",
        "config": {"password": "********", "size": 1},
        "revision": 2,
    }
    assert (paused.actor, paused.before) == ("carol", {"state": "scheduled", "paused": False, "revision": 2})
    assert "s3cr3t" not in str([created, changed, paused])


async def test_it_writes_nothing_down_when_it_refuses(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    with pytest.raises(MoveRefused):
        await desk.jobs.resume(job.id, "alice")
    assert [entry.action for entry in await desk.audit(job.id)] == ["create"]


async def test_it_says_what_it_did_not_find(desk: Desk) -> None:
    for verb in (desk.jobs.get, desk.jobs.pause, desk.jobs.force_run, desk.jobs.remove):
        with pytest.raises(NotFound, match="no job 'nobody'"):
            await verb("nobody")


async def _by_sql(desk: Desk, job: Job, **columns: object) -> None:
    values = ", ".join(f"{name} = :{name}" for name in columns)
    query = text(f"UPDATE jobs SET {values} WHERE id = :id")
    await desk.db.write(lambda conn: conn.execute(query, {**columns, "id": job.id}))


async def test_it_knows_of_a_schedule_that_plain_sql_changed_a_moment_ago(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await desk.plan(hours=2)
    await _by_sql(desk, job, cron_expression="30 * * * *")
    changed = await desk.jobs.change(job.id, lambda old: replace(old, description="new"))
    assert changed.next_run_at == at("2027-01-01T12:30")
    assert await desk.history(job) == []
    await desk.plan(hours=1)
    assert [e.scheduled_for.minute for e in await desk.history(job)] == [30]


async def test_it_lets_people_mend_what_plain_sql_broke(desk: Desk) -> None:
    job = await desk.new(schedule=HOURLY)
    await _by_sql(desk, job, cron_expression="whenever")
    with pytest.raises(Invalid, match="cron_expression: 'whenever'"):
        await desk.jobs.pause(job.id)
    mended = await desk.jobs.change(job.id, lambda old: replace(old, timing=a_timing(HOURLY)))
    assert mended.next_run_at == at("2027-01-01T13:00")
    assert (await desk.jobs.pause(job.id)).state is JobState.PAUSED
