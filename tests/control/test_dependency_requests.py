"""What a job may depend on: known jobs, by id or by name, and never itself by some way round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from noonday.domain.errors import Conflict, Invalid
from noonday.domain.job import Job, JobId
from noonday.domain.schedule import Manual
from tests.control.desk import Desk
from tests.factories import an_id


def names(*refs: str) -> tuple[JobId, ...]:
    return tuple(JobId(ref) for ref in refs)


async def test_it_takes_names_and_keeps_ids(desk: Desk) -> None:
    first, second = await desk.new(name="first"), await desk.new(name="second")
    job = await desk.new(depends_on=names("first", second.id, "second"), on_success_of=names("first"))
    assert job.depends_on == (first.id, second.id)
    assert job.on_success_of == (first.id,)
    assert await desk.jobs.get(job.id) == job


async def test_it_names_each_job_that_does_not_exist(desk: Desk) -> None:
    await desk.new(name="there")
    missing = an_id()
    with pytest.raises(Invalid) as refused:
        await desk.new(depends_on=names("there", "gone"), on_success_of=names(missing))
    assert [(p.field, p.message) for p in refused.value.problems] == [
        ("depends_on[1]", "there is no job 'gone'"),
        ("on_success_of[0]", f"there is no job '{missing}'"),
    ]


async def test_it_refuses_a_circle_and_shows_it(desk: Desk) -> None:
    a = await desk.new(name="a")
    b = await desk.new(name="b", depends_on=names("a"))
    await desk.new(name="c", on_success_of=(b.id,))
    with pytest.raises(Invalid, match="depends_on: would run in a circle: a → c → b → a"):
        await desk.jobs.change(a.id, lambda job: replace(job, depends_on=names("c")))
    with pytest.raises(Invalid, match="a → a"):
        await desk.jobs.change(a.id, lambda job: replace(job, depends_on=(job.id,)))
    assert (await desk.jobs.get("a")).depends_on == ()


async def test_it_refuses_a_circle_that_two_changes_would_close_together(desk: Desk) -> None:
    await desk.new(name="a", schedule=Manual())
    await desk.new(name="b", schedule=Manual())

    def on(parent: str) -> Callable[[Job], Job]:
        return lambda job: replace(job, depends_on=names(parent))

    changes = (desk.jobs.change("a", on("b")), desk.jobs.change("b", on("a")))
    answers = await asyncio.gather(*changes, return_exceptions=True)
    assert [type(answer) for answer in answers if not isinstance(answer, Job)] == [Invalid]


async def test_it_keeps_a_job_that_others_need(desk: Desk) -> None:
    parent = await desk.new(name="parent")
    await desk.new(name="child", depends_on=names("parent"))
    with pytest.raises(Conflict, match="'parent' is needed by child"):
        await desk.jobs.remove(parent.id)
    await desk.jobs.remove("child")
    await desk.jobs.remove("parent")
