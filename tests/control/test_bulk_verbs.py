"""One action on many jobs: each by its own rules, one that fails stops no other, nothing by surprise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import Connection

from noonday.control import bulk as bulk_module
from noonday.control.bulk import Action, Bulk, Choice, Done, choose
from noonday.domain.errors import Conflict, Invalid
from noonday.domain.execution import Cause
from noonday.domain.job import Job, JobState
from noonday.store import jobs
from noonday.store.database import Database
from tests.control.desk import Desk
from tests.factories import NOON, a_job


class ManyDesk(Desk):
    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.bulk = Bulk(db, self.clock, self.jobs)

    async def act(self, action: Action, search: str | None = "tag:x", **more: Any) -> Done:
        expect = more.pop("expect", None)
        named = more.pop("named", None)
        choice = choose(None if named else search, named, self.clock.now(), **more)
        return await self.bulk.act(action, choice, "alice", expect=expect)

    async def some(self, count: int, **changes: Any) -> list[Job]:
        return [await self.new(tags=("x",), **changes) for _ in range(count)]

    async def now(self, made: list[Job]) -> list[Job]:
        return [await self.jobs.get(job.id) for job in made]


@pytest.fixture
def desk(db: Database) -> ManyDesk:
    return ManyDesk(db)


async def test_it_does_every_action(desk: ManyDesk) -> None:
    made = await desk.some(3)
    other = await desk.new()
    steps: list[tuple[Action, Callable[[Job], object]]] = [
        (Action.PAUSE, lambda job: job.paused),
        (Action.RESUME, lambda job: not job.paused and job.state is JobState.SCHEDULED),
        (Action.DISABLE, lambda job: not job.enabled),
        (Action.ENABLE, lambda job: job.enabled and job.next_run_at),
        (Action.CANCEL, lambda job: job.state is JobState.CANCELLED),
    ]
    for action, holds in steps:
        done = await desk.act(action)
        assert (done.matched, done.done, done.unchanged, done.failed) == (3, 3, 0, ()), action
        assert all(holds(job) for job in await desk.now(made)), action
        again = await desk.act(action)
        assert (again.done, again.unchanged) == (0, 3), action
    assert await desk.jobs.get(other.id) == other


async def test_it_writes_an_audit_entry_for_each_job(desk: ManyDesk) -> None:
    made = await desk.some(3)
    desk.advance(seconds=1)
    await desk.act(Action.PAUSE)
    for job in made:
        created, paused = await desk.audit(job.id)
        assert (created.action, paused.action, paused.actor, paused.revision) == (
            "create",
            "pause",
            "alice",
            2,
        )


async def test_it_runs_each_once(desk: ManyDesk) -> None:
    made = await desk.some(3)
    done = await desk.act(Action.RUN)
    assert done.done == 3
    for job in made:
        (run,) = await desk.history(job)
        assert (run.cause, run.triggered_by) == (Cause.MANUAL, "alice")
    again = await desk.act(Action.RUN)  # their overlap is skip, and each has a run about to start
    assert (again.done, len(again.failed)) == (0, 3)
    assert "forced run" in again.failed[0].error


async def test_it_goes_on_after_one_that_fails(desk: ManyDesk) -> None:
    first, busy, last = await desk.some(3)
    desk.advance(seconds=1)
    await desk.jobs.force_run(busy.id)
    done = await desk.act(Action.PAUSE)
    assert (done.done, done.unchanged) == (2, 0)
    (failure,) = done.failed
    assert (failure.job_id, failure.name) == (busy.id, busy.name)
    assert "pending" in failure.error
    paused = [job.paused for job in await desk.now([first, busy, last])]
    assert paused == [True, False, True]
    assert [entry.action for entry in await desk.audit(busy.id)] == ["create", "force-run"]


async def test_it_takes_back_the_half_of_a_change(desk: ManyDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, half = await desk.some(2)
    real = desk.bulk._verbs[Action.PAUSE]

    def stumble(conn: Connection, now: datetime, job_id: str, by: str | None) -> object:
        made = real(conn, now, job_id, by)
        if job_id == half.id:
            raise Conflict("stumbled")
        return made

    monkeypatch.setattr(desk.bulk, "_verbs", {Action.PAUSE: stumble})
    done = await desk.act(Action.PAUSE)
    assert (done.done, [failure.error for failure in done.failed]) == (1, ["stumbled"])
    assert [job.paused for job in await desk.now([whole, half])] == [True, False]
    assert len(await desk.audit(half.id)) == 1


async def test_it_works_in_small_transactions(desk: ManyDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_module, "_BATCH", 2)
    sizes: list[int] = []
    real = desk.bulk._batch

    def batch(conn: Connection, **how: Any) -> Any:
        sizes.append(len(how["batch"]))
        return real(conn, **how)

    monkeypatch.setattr(desk.bulk, "_batch", batch)
    await desk.some(5)
    done = await desk.act(Action.PAUSE)
    assert (done.done, sizes) == (5, [2, 2, 1])


async def test_it_deletes_a_chain_whatever_the_order(desk: ManyDesk) -> None:
    old = await desk.new(tags=("x",))
    middle = await desk.new(tags=("x",), depends_on=(old.id,))
    new = await desk.new(tags=("x",), on_success_of=(middle.id,))
    # The other way round as well: the oldest of these is needed by nobody.
    top, low = await desk.some(2)
    await desk.jobs.change(top.id, lambda job: replace(job, depends_on=(low.id,)))
    done = await desk.act(Action.DELETE)
    assert (done.matched, done.done, done.failed) == (5, 5, ())
    left = await desk.db.read(lambda conn: jobs.known(conn, [old.id, middle.id, new.id, top.id, low.id]))
    assert left == set()


async def test_it_keeps_what_others_need(desk: ManyDesk) -> None:
    needed, free = await desk.some(2)
    outside = await desk.new(depends_on=(needed.id,))
    done = await desk.act(Action.DELETE)
    assert (done.matched, done.done) == (2, 1)
    (failure,) = done.failed
    assert failure.job_id == needed.id
    assert outside.name in failure.error
    assert await desk.db.read(lambda conn: jobs.get(conn, free.id)) is None


async def test_it_does_nothing_if_another_number_matches(desk: ManyDesk) -> None:
    made = await desk.some(3)
    with pytest.raises(Conflict, match="3 jobs match, not the 2 expected"):
        await desk.act(Action.PAUSE, expect=2)
    assert await desk.now(made) == made
    assert (await desk.act(Action.PAUSE, expect=3)).done == 3
    with pytest.raises(Conflict):
        await desk.act(Action.PAUSE, named=["nobody"], expect=1)


async def test_it_leaves_alone_what_does_not_match_any_more(
    desk: ManyDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_module, "_BATCH", 1)
    first, changed, gone = await desk.some(3)
    real = desk.bulk._verbs[Action.PAUSE]

    def meanwhile(conn: Connection, now: datetime, job_id: str, by: str | None) -> object:
        """While the first is paused, somebody takes the tag from the second and deletes the third."""
        if job_id == first.id:
            desk.jobs.changed(conn, now, changed.id, lambda job: replace(job, tags=()), by)
            desk.jobs.removed(conn, now, gone.id, by)
        return real(conn, now, job_id, by)

    monkeypatch.setattr(desk.bulk, "_verbs", {Action.PAUSE: meanwhile})
    done = await desk.act(Action.PAUSE)
    assert (done.matched, done.done, done.unchanged, done.failed) == (3, 1, 2, ())
    assert not (await desk.jobs.get(changed.id)).paused


async def test_it_takes_jobs_by_name_and_by_id(desk: ManyDesk) -> None:
    one, two, three = await desk.some(3)
    done = await desk.act(Action.PAUSE, named=[one.name, two.id, two.name, "nobody"])
    assert (done.matched, done.done) == (2, 2)
    (failure,) = done.failed
    assert (failure.job_id, failure.name, failure.error) == (None, "nobody", "there is no job 'nobody'")
    assert not (await desk.jobs.get(three.id)).paused


async def test_it_touches_only_the_jobs_of_the_service(desk: ManyDesk) -> None:
    (stranger,) = await desk.some(1)
    for choice in (
        {"search": "tag:x"},
        {"named": [stranger.id, stranger.name]},
        {"search": None, "all": True},
    ):
        done = await desk.act(Action.DELETE, service="email", **choice)
        assert (done.matched, done.done) == (0, 0)
    assert await desk.jobs.get(stranger.id) == stranger


async def test_it_looks_first(desk: ManyDesk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_module, "SHOWN", 2)
    made = await desk.some(3)
    seen = await desk.bulk.preview(choose("tag:x", None, NOON))
    assert (seen.matched, seen.jobs) == (3, tuple(made[:2]))
    assert (await desk.bulk.preview(choose("tag:y", None, NOON))).matched == 0
    assert (await desk.bulk.preview(choose(None, None, NOON, all=True))).matched == 3


async def test_it_refuses_more_than_one_call_should_do(
    desk: ManyDesk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_module, "MOST", 2)
    made = await desk.some(3)
    with pytest.raises(Invalid, match="finds 3 jobs, and one call changes at most 2"):
        await desk.act(Action.PAUSE)
    assert await desk.now(made) == made


@pytest.mark.parametrize(
    ("search", "named", "every"),
    [
        (None, None, False),
        ("", None, False),
        ("  ", None, False),
        ("tag:x", ["a"], False),
        ("tag:x", None, True),
    ],
)
def test_it_wants_to_be_told_which_jobs(search: str | None, named: list[str] | None, every: bool) -> None:
    with pytest.raises(Invalid):
        choose(search, named, NOON, all=every)


def test_it_takes_an_empty_list_as_no_job() -> None:
    assert choose(None, [], NOON) == Choice(filter=jobs.JobFilter(), named=())


async def test_it_does_many(desk: ManyDesk) -> None:
    made = [replace(a_job(), tags=("x",), next_run_at=NOON) for _ in range(60)]
    await desk.db.write(lambda conn: jobs.add_many(conn, made))
    done = await desk.act(Action.PAUSE, expect=60)
    assert (done.done, done.failed) == (60, ())
