"""Jobs move between the engines while they fire, by every way there is: nothing is lost, nothing doubled."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import text, update

from noonday.control.engines import Choice, Engines
from noonday.domain.errors import Invalid, NotFound
from noonday.domain.execution import Execution, ExecutionState, Road
from noonday.domain.job import Job, Overlap, OverlapPolicy
from noonday.domain.schedule import Cron, Immediate, Interval, IntervalUnit
from noonday.domain.target import PythonTarget
from noonday.store import jobs, tables
from noonday.store.notices import JOBS, WORK
from noonday.testing import FlakyRoad, ManualClock, ManualInstance
from tests.control.desk import Desk

EVERY_SECOND = Interval(count=1, unit=IntervalUnit.SECONDS)
ALLOW = OverlapPolicy(overlap=Overlap.ALLOW)


@pytest.fixture(params=["without streams", "with streams"])
async def scheduler(db_url: str, request: pytest.FixtureRequest) -> AsyncIterator[ManualInstance]:
    clock = ManualClock()
    road = FlakyRoad(clock) if request.param == "with streams" else None
    async with ManualInstance(db_url, clock=clock, road=road) as made:

        @made.task
        async def work(seconds: float = 0.0) -> None:
            if seconds:
                await made.clock.sleep(seconds)

        yield made


Move = Callable[[ManualInstance, str, int], Awaitable[object]]


async def by_control(scheduler: ManualInstance, name: str, to: int) -> object:
    return await Engines(scheduler.db, scheduler.clock).move(Choice(jobs=(name,)), Road(to), "alice")


async def by_edit(scheduler: ManualInstance, name: str, to: int) -> object:
    return await scheduler.jobs.change(name, lambda job: replace(job, scheduler_version=to), "alice")


async def by_sql(scheduler: ManualInstance, name: str, to: int) -> object:
    """As somebody at a prompt: nobody of ours is told, the database itself must notice."""
    change = text("UPDATE jobs SET scheduler_version = :to WHERE name = :name")
    return await scheduler.db.write(lambda conn: conn.execute(change, {"to": to, "name": name}))


async def waiting(scheduler: ManualInstance, name: str) -> list[Execution]:
    return [row for row in await scheduler.history(name) if row.state is ExecutionState.QUEUED]


@pytest.mark.parametrize("move", [by_control, by_edit, by_sql])
async def test_it_loses_and_doubles_nothing_while_a_job_moves_to_and_fro(
    scheduler: ManualInstance, move: Move
) -> None:
    await scheduler.add("steady", EVERY_SECOND, PythonTarget(task="work", args=(0.4,)), overlapping=ALLOW)
    begun = scheduler.clock.now()
    for step in range(7):
        await scheduler.tick(seconds=1.7)
        await move(scheduler, "steady", 2 - step % 2)
    await scheduler.tick(seconds=2)
    rows = [row for row in await scheduler.history("steady") if row.scheduled_for <= scheduler.clock.now()]
    due = int((scheduler.clock.now() - begun).total_seconds())
    slots = Counter(row.scheduled_for for row in rows)
    assert [begun + timedelta(seconds=n) for n in range(1, due + 1)] == sorted(slots)
    assert set(slots.values()) == {1}
    ended = [row for row in rows if row.state is not ExecutionState.RUNNING]
    assert {row.state for row in ended} == {ExecutionState.COMPLETED}
    assert {row.attempt for row in ended} == {1}
    assert {row.road for row in rows} == {Road.DATABASE, Road.STREAMS}


@pytest.mark.parametrize("move", [by_control, by_edit, by_sql])
async def test_what_waits_goes_along_and_what_runs_ends_where_it_began(
    scheduler: ManualInstance, move: Move
) -> None:
    target = PythonTarget(task="work", args=(30,))
    one = OverlapPolicy(overlap=Overlap.QUEUE)
    job = await scheduler.add("queue", EVERY_SECOND, target, overlapping=one)
    await scheduler.tick(seconds=3)
    await move(scheduler, "queue", 2)
    rows = await scheduler.history("queue")
    assert [row.road for row in rows if row.state is ExecutionState.RUNNING] == [Road.DATABASE]
    others = [row.road for row in rows if row.state in (ExecutionState.QUEUED, ExecutionState.PENDING)]
    assert len(others) >= 3
    assert set(others) == {Road.STREAMS}
    moved = await scheduler.jobs.get("queue")
    assert (moved.scheduler_version, moved.revision) == (2, job.revision + 1)
    assert moved.next_run_at is not None
    await scheduler.tick(seconds=28)
    first = (await scheduler.history("queue"))[0]
    assert (first.state, first.road) == (ExecutionState.COMPLETED, Road.DATABASE)


async def test_a_promised_run_that_goes_back_to_the_database_is_run_once(scheduler: ManualInstance) -> None:
    await scheduler.add("steady", EVERY_SECOND, "work", scheduler_version=2)
    await scheduler.tick(seconds=1)
    promised = await waiting(scheduler, "steady")
    assert promised
    await by_sql(scheduler, "steady", 1)
    fed = tables.executions.c.enqueued_at.is_not(None) & (tables.executions.c.road == 1)
    query = tables.executions.select().where(fed)
    assert (await scheduler.db.read(lambda conn: conn.execute(query).all())) == []
    await scheduler.tick(seconds=10)
    rows = await scheduler.history("steady")
    ended = {row.id: (row.state, row.attempt) for row in rows}
    assert {ended[row.id] for row in promised} == {(ExecutionState.COMPLETED, 1)}


async def test_plain_sql_that_changes_more_arms_the_job_anew(scheduler: ManualInstance) -> None:
    await scheduler.add("steady", EVERY_SECOND, "work")
    await scheduler.tick(seconds=1)
    change = update(tables.jobs).values(
        scheduler_version=2, schedule_type="cron", cron_expression="0 3 * * *"
    )
    await scheduler.db.write(lambda conn: conn.execute(change))
    job = await scheduler.jobs.get("steady")
    assert job.revision == 2
    await scheduler.tick(seconds=1)
    job = await scheduler.jobs.get("steady")
    assert (job.scheduler_version, job.timing.schedule) == (2, Cron(expression="0 3 * * *"))
    assert job.next_run_at is not None
    assert job.next_run_at.hour == 3


async def test_a_version_that_is_neither_takes_the_database_road(scheduler: ManualInstance) -> None:
    await scheduler.add("odd", EVERY_SECOND, "work", scheduler_version=2)
    await scheduler.tick(seconds=1)
    await by_sql(scheduler, "odd", 7)
    assert {row.road for row in await waiting(scheduler, "odd")} == {Road.DATABASE}
    await scheduler.tick(seconds=2)
    assert not [row for row in await scheduler.history("odd") if row.state is ExecutionState.SKIPPED]


async def some(desk: Desk) -> list[Job]:
    red, blue = await desk.new(tags=("red",)), await desk.new(tags=("blue", "red"))
    return [red, blue, await desk.new(tags=("blue",)), await desk.new(scheduler_version=2)]


async def versions(desk: Desk, made: list[Job]) -> list[int]:
    return [(await desk.jobs.get(job.id)).scheduler_version for job in made]


async def test_it_moves_by_name_by_tag_and_all(desk: Desk) -> None:
    engines, made = Engines(desk.db, desk.clock), await some(desk)
    assert (await engines.move(Choice(tag="red"), Road.STREAMS)).count == 2
    assert await versions(desk, made) == [2, 2, 1, 2]
    moved = await engines.move(Choice(jobs=(made[0].name, made[2].id)), Road.DATABASE)
    assert (moved.count, moved.names) == (1, (made[0].name,))  # the other one is there already
    dry = await engines.move(Choice(all=True), Road.STREAMS, dry_run=True)
    assert (dry.count, sorted(dry.names)) == (2, sorted([made[0].name, made[2].name]))
    assert await versions(desk, made) == [1, 2, 1, 2]
    assert (await engines.move(Choice(all=True), Road.STREAMS)).count == 2
    assert (await engines.move(Choice(all=True), Road.STREAMS)).count == 0
    assert await versions(desk, made) == [2, 2, 2, 2]


async def test_it_moves_all_of_many_in_batches(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("noonday.control.engines._BATCH", 2)
    made = [await desk.new() for _ in range(5)]
    assert (await Engines(desk.db, desk.clock).move(Choice(all=True), Road.STREAMS)).count == 5
    assert set(await versions(desk, made)) == {2}


async def test_it_is_audited_tells_the_others_and_leaves_the_times_alone(desk: Desk) -> None:
    job = await desk.new(schedule=Cron(expression="0 * * * *"))
    work, changes = desk.db.subscribe(WORK), desk.db.subscribe(JOBS)
    desk.advance(seconds=1)
    await Engines(desk.db, desk.clock).move(Choice(jobs=(job.name,)), Road.STREAMS, "alice")
    moved = await desk.jobs.get(job.id)
    assert (moved.revision, moved.next_run_at, moved.updated_at) == (
        job.revision + 1,
        job.next_run_at,
        desk.clock.now(),
    )
    assert work.is_set() or await work.wait()
    assert changes.is_set() or await changes.wait()
    entry = (await desk.audit(job.id))[-1]
    assert (entry.actor, entry.action, entry.before, entry.after) == (
        "alice",
        "update",
        {"scheduler_version": 1},
        {"scheduler_version": 2},
    )


async def test_one_unknown_name_moves_nothing(desk: Desk) -> None:
    made = await some(desk)
    with pytest.raises(NotFound, match="there is no job 'nobody'"):
        await Engines(desk.db, desk.clock).move(Choice(jobs=(made[0].name, "nobody")), Road.STREAMS)
    assert await versions(desk, made) == [1, 1, 1, 2]


@pytest.mark.parametrize("given", [{}, {"all": True, "tag": "x"}, {"jobs": ("a",), "tag": "x"}], ids=str)
def test_it_wants_one_choice(given: dict[str, object]) -> None:
    with pytest.raises(Invalid, match="one of the three"):
        Choice(**given)  # type: ignore[arg-type]  # wrong on purpose


async def test_a_job_changed_by_plain_sql_stays_so_when_it_moves(desk: Desk) -> None:
    """The watcher has still to arm it anew: moving must not tell it that there is nothing to do."""
    job = await desk.new(schedule=Cron(expression="0 * * * *"))
    change = update(tables.jobs).values(cron_expression="30 * * * *")
    await desk.db.write(lambda conn: conn.execute(change))
    await Engines(desk.db, desk.clock).move(Choice(all=True), Road.STREAMS)
    (found,) = await desk.db.write(jobs.changed)
    assert isinstance(found, Job)
    assert (found.id, found.scheduler_version) == (job.id, 2)


async def test_an_immediate_job_that_moves_runs_once(scheduler: ManualInstance) -> None:
    await scheduler.add("now", Immediate(), "work")
    await by_control(scheduler, "now", 2)
    await scheduler.tick(seconds=3)
    await by_sql(scheduler, "now", 1)
    await scheduler.tick(seconds=3)
    [run] = await scheduler.history("now")
    assert (run.state, run.road) == (ExecutionState.COMPLETED, Road.STREAMS)
