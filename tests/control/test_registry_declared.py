"""Services declare their jobs, people change them, both again: on both databases, one transaction each."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine, delete, event, func, select, update

from noonday.control.registry import Declaration, Registered, Registry
from noonday.domain.access import ANYBODY, Caller, Role
from noonday.domain.declaring import fields_of
from noonday.domain.errors import Conflict, Invalid, NotAllowed
from noonday.domain.job import Job, JobId, JobState
from noonday.domain.schedule import Cron
from noonday.domain.target import ServiceTarget
from noonday.store import declarations, jobs
from noonday.store.front_tables import declarations as table
from noonday.store.tables import jobs as jobs_table
from tests.control.desk import Desk
from tests.factories import a_job, a_timing, an_id

ALWAYS = frozenset({"cronExpression", "service", "endpoint"})
EMAIL = Caller(name="email", role=Role.SERVICE, service="email-service")


@pytest.fixture
def registry(desk: Desk) -> Registry:
    return Registry(desk.db, desk.clock, desk.jobs)


def wanted(name: str = "digest", service: str = "email-service", **changes: Any) -> Job:
    cron = changes.pop("cron", "0 9 * * 1")
    made = a_job(
        id=JobId(an_id()),
        name=name,
        timing=a_timing(Cron(expression=cron)),
        target=ServiceTarget(service=service, endpoint=f"/jobs/{name}"),
        state=JobState.PENDING,
    )
    return replace(made, **changes)


USUAL = {name: value for name, value in fields_of(wanted()).items() if name not in ALWAYS}


def says(*named: str, override: Any = False, **changes: Any) -> Declaration:
    job = wanted(**changes)
    assert isinstance(job.target, ServiceTarget)
    return Declaration(
        service=job.target.service, job=job, named=ALWAYS | set(named), usual=USUAL, override=override
    )


async def state(desk: Desk, name: str = "digest") -> tuple[int, int, Any]:
    """What would differ if anything had been written: revision, audit entries, the declaration."""
    job = await desk.jobs.get(name)
    said = await desk.db.read(lambda conn: declarations.get(conn, job.id))
    return job.revision, len(await desk.audit(job.id)), said


def fields(found: Registered) -> list[str]:
    return [kept.field for kept in found.kept]


async def test_it_creates_the_job_and_remembers_what_was_said(desk: Desk, registry: Registry) -> None:
    made = await registry.register(says("config", config={"batch": 100}), EMAIL)
    assert (made.created, made.job.state, made.job.next_run_at is not None) == (
        True,
        JobState.SCHEDULED,
        True,
    )
    assert await desk.jobs.get("digest") == made.job
    said = await desk.db.read(lambda conn: declarations.get(conn, made.job.id))
    assert said is not None
    assert said.service == "email-service"
    assert said.body == {
        "cronExpression": "0 9 * * 1",
        "service": "email-service",
        "endpoint": "/jobs/digest",
        "config.batch": 100,
    }
    assert [(entry.actor, entry.action) for entry in await desk.audit(made.job.id)] == [("email", "create")]


async def test_the_same_again_writes_nothing(desk: Desk, registry: Registry) -> None:
    said = says("enabled", "config", config={"a": [1, {"b": None}], "c": 1.5})
    await registry.register(said, EMAIL)
    before = await state(desk)
    desk.advance(hours=1)
    again = await registry.register(replace(said, job=replace(said.job, id=JobId(an_id()))), EMAIL)
    assert (again.created, again.changed, again.kept) == (False, (), ())
    assert await state(desk) == before


async def test_a_new_declaration_changes_the_job_and_is_in_the_audit(desk: Desk, registry: Registry) -> None:
    first = await registry.register(says(), EMAIL)
    desk.advance(seconds=1)
    done = await registry.register(says(cron="0 8 * * *"), EMAIL)
    assert (done.changed, done.job.id) == (("cronExpression",), first.job.id)
    assert done.job.next_run_at != first.job.next_run_at
    (_, entry) = await desk.audit(done.job.id)
    assert (entry.actor, entry.action, entry.revision) == ("email", "update", done.job.revision)
    assert set(entry.after or {}) == {"timing", "revision"}


async def test_a_redeploy_keeps_what_an_operator_did(desk: Desk, registry: Registry) -> None:
    await registry.register(says("enabled"), EMAIL)
    await desk.jobs.change("digest", lambda job: replace(job, timing=wanted(cron="30 7 * * *").timing), "ada")
    await desk.jobs.pause("digest", "ada")
    await desk.jobs.disable("digest", "ada")
    before = await state(desk)
    done = await registry.register(says("enabled"), EMAIL)
    assert fields(done) == ["cronExpression", "enabled"]
    assert (done.job.paused, done.job.enabled) == (True, False)
    assert await state(desk) == before


async def test_insisting_takes_fields_back_but_never_undoes_a_pause(desk: Desk, registry: Registry) -> None:
    await registry.register(says("enabled"), EMAIL)
    await desk.jobs.pause("digest", "ada")
    await desk.jobs.disable("digest", "ada")
    done = await registry.register(says("enabled", override=True), EMAIL)
    assert (done.changed, done.job.enabled) == (("enabled",), True)
    assert (done.job.paused, done.job.state) == (True, JobState.PAUSED)


async def test_it_leaves_a_cancelled_job_alone(desk: Desk, registry: Registry) -> None:
    await registry.register(says(), EMAIL)
    await desk.jobs.cancel("digest", "ada")
    done = await registry.register(says("enabled", cron="0 8 * * *", override=True), EMAIL)
    assert (done.changed, fields(done), done.job.state) == ((), ["status"], JobState.CANCELLED)


async def test_after_a_delete_it_is_created_anew_and_the_old_word_is_forgotten(
    desk: Desk, registry: Registry
) -> None:
    async def remembered() -> int:
        count = select(func.count()).select_from(table)
        return await desk.db.read(lambda conn: conn.execute(count).scalar_one())

    first = await registry.register(says(), EMAIL)
    await desk.jobs.remove("digest", "ada")
    assert await remembered() == 0
    second = await registry.register(says(), EMAIL)
    assert (second.created, second.job.id != first.job.id) == (True, True)
    await desk.db.write(lambda conn: conn.execute(delete(jobs_table)))  # as people do it by plain SQL
    assert await remembered() == 1
    assert (await registry.register(says(), EMAIL)).created
    assert await remembered() == 1


async def test_a_service_registers_for_itself_alone(desk: Desk, registry: Registry) -> None:
    with pytest.raises(NotAllowed, match="email-service"):
        await registry.register(says(service="crawler-service"), EMAIL)
    with pytest.raises(NotAllowed):
        await registry.register_all("crawler-service", [], EMAIL, prune=True)
    with pytest.raises(NotAllowed):
        await registry.register(says(), Caller(name="none", role=Role.SERVICE))
    assert (await desk.jobs.find(jobs.JobFilter())).total == 0


@pytest.mark.parametrize("who", [EMAIL, ANYBODY], ids=["service", "admin"])
async def test_a_name_of_another_service_is_a_conflict(desk: Desk, registry: Registry, who: Caller) -> None:
    await registry.register(says(service="crawler-service"), ANYBODY)
    await desk.new(name="by-hand")
    before = await state(desk)
    for override in (False, True):
        with pytest.raises(Conflict, match="another service"):
            await registry.register(says(override=override), who)
        with pytest.raises(Conflict, match="no service declared"):
            await registry.register(says(name="by-hand", override=override), who)
    assert await state(desk) == before


async def test_who_is_no_service_may_hand_a_job_over(desk: Desk, registry: Registry) -> None:
    await registry.register(says(service="crawler-service"), ANYBODY)
    taking = says(override=frozenset({"service"}))
    with pytest.raises(Conflict):
        await registry.register(taking, EMAIL)
    done = await registry.register(taking, ANYBODY)
    assert done.changed == ("service",)
    assert (await registry.get("digest")).service == "email-service"
    assert (await registry.register(says(), EMAIL)).changed == ()


async def test_it_adopts_a_job_that_calls_the_service_already(desk: Desk, registry: Registry) -> None:
    await desk.new(name="digest", target=wanted().target, description="by hand", state=JobState.PENDING)
    done = await registry.register(says("config", config={"batch": 1}), EMAIL)
    assert (done.changed, fields(done)) == (("config.batch",), ["cronExpression"])
    assert fields(await registry.register(says("config", config={"batch": 1}), EMAIL)) == ["cronExpression"]


async def test_where_existing_jobs_are_not_replaced_they_are_left_alone(desk: Desk) -> None:
    registry = Registry(desk.db, desk.clock, desk.jobs, replace_existing=False)
    assert (await registry.register(says(), EMAIL)).created
    before = await state(desk)
    done = await registry.register(says(cron="0 8 * * *", override=True), EMAIL)
    assert (done.left_alone, done.changed) == (True, ())
    assert await state(desk) == before


async def test_the_set_of_a_service_is_registered_in_the_order_of_dependence(
    desk: Desk, registry: Registry
) -> None:
    last = says("dependsOn", name="a", depends_on=(JobId("b"),))
    middle = says("onSuccessOf", name="b", on_success_of=(JobId("c"),))
    done = await registry.register_all("email-service", [last, middle, says(name="c")], EMAIL)
    assert [(one.job.name, one.created) for one in done.jobs] == [("a", True), ("b", True), ("c", True)]
    a, b, c = (one.job for one in done.jobs)
    assert (a.depends_on, b.on_success_of) == ((b.id,), (c.id,))
    again = await registry.register_all("email-service", [last, middle, says(name="c")], EMAIL)
    assert [(one.created, one.changed, one.kept) for one in again.jobs] == [(False, (), ())] * 3


async def test_one_wrong_job_leaves_the_whole_set_unwritten(desk: Desk, registry: Registry) -> None:
    bad = says(name="bad", cron="61 * * * *")
    with pytest.raises(Invalid) as caught:
        await registry.register_all("email-service", [says(), bad], EMAIL, prune=True)
    assert [problem.field for problem in caught.value.problems] == ["jobs[1].cron_expression"]
    assert (await desk.jobs.find(jobs.JobFilter())).total == 0


async def enabled(desk: Desk) -> dict[str, bool]:
    return {job.name: job.enabled for job in (await desk.jobs.find(jobs.JobFilter(), order="name")).items}


async def test_jobs_that_are_declared_no_more_are_disabled_if_asked(desk: Desk, registry: Registry) -> None:
    everything = [says(name=name) for name in "abc"]
    await registry.register_all("email-service", everything, EMAIL)
    await registry.register(says(name="other", service="crawler-service"), ANYBODY)
    desk.advance(seconds=1)
    kept = await registry.register_all("email-service", everything[:1], EMAIL)
    assert kept.disabled == ()
    done = await registry.register_all("email-service", everything[:1], EMAIL, prune=True)
    assert [job.name for job in done.disabled] == ["b", "c"]
    assert await enabled(desk) == {"a": True, "b": False, "c": False, "other": True}
    again = await registry.register_all("email-service", everything[:1], EMAIL, prune=True)
    assert again.disabled == ()
    assert [entry.action for entry in await desk.audit(done.disabled[0].id)] == ["create", "update"]
    back = await registry.register_all("email-service", everything, EMAIL, prune=True)
    assert [one.changed for one in back.jobs] == [(), ("enabled",), ("enabled",)]
    assert all((await enabled(desk)).values())


async def test_pruning_goes_behind_a_persons_word_too(desk: Desk, registry: Registry) -> None:
    everything = [says("enabled", name=name) for name in "ab"]
    await registry.register_all("email-service", everything, EMAIL)
    await desk.jobs.disable("a", "ada")
    await registry.register_all("email-service", [], EMAIL, prune=True)
    await desk.jobs.enable("b", "ada")
    await registry.register_all("email-service", [], EMAIL, prune=True)
    assert await enabled(desk) == {"a": False, "b": True}
    back = await registry.register_all("email-service", everything, EMAIL, prune=True)
    assert await enabled(desk) == {"a": False, "b": True}
    assert [fields(one) for one in back.jobs] == [["enabled"], []]


async def test_many_instances_may_register_the_same_at_once(desk: Desk, registry: Registry) -> None:
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(registry.register(says("enabled"), EMAIL)) for _ in range(8)]
    done = [task.result() for task in tasks]
    assert sum(one.created for one in done) == 1
    assert len({one.job.id for one in done}) == 1
    assert all(not one.changed and not one.kept for one in done)


async def test_whole_sets_in_different_orders_do_not_stand_in_each_others_way(
    desk: Desk, registry: Registry
) -> None:
    def crew(hour: int) -> list[Declaration]:
        """All but one; the odd ones begin with the last."""
        first = says("dependsOn", name="a", cron=f"0 {hour} * * *", depends_on=(JobId("f"),) * (hour % 2))
        left_out = "bcde"[hour % 4]
        return [first, *(says(name=name, cron=f"0 {hour} * * *") for name in "bcdef" if name != left_out)]

    await registry.register_all("email-service", [says(name=name) for name in "abcdef"], EMAIL)
    async with asyncio.TaskGroup() as group:
        for hour in range(8):
            group.create_task(registry.register_all("email-service", crew(hour), EMAIL, prune=True))
    crons = {fields_of(await desk.jobs.get(name))["cronExpression"] for name in "af"}
    assert len(crons) == 1


async def test_many_new_jobs_take_no_more_statements_than_a_few(desk: Desk, registry: Registry) -> None:
    async def statements(names: list[str]) -> int:
        count = 0

        @event.listens_for(Engine, "before_cursor_execute")
        def seen(*_: object) -> None:
            nonlocal count
            count += 1

        try:
            await registry.register_all("email-service", [says(name=name) for name in names], EMAIL)
        finally:
            event.remove(Engine, "before_cursor_execute", seen)
        return count

    few = await statements([f"few-{n}" for n in range(3)])
    assert await statements([f"many-{n}" for n in range(60)]) == few
    for name in ("few-0", "many-59"):
        revision, entries, said = await state(desk, name)
        assert (revision, entries) == (1, 1)
        assert said is not None


async def test_the_same_set_again_takes_a_few_statements_and_writes_nothing(
    desk: Desk, registry: Registry
) -> None:
    async def again(count: int) -> int:
        said: list[str] = []

        def note(_: object, __: object, statement: str, *more: object) -> None:
            said.append(statement)

        event.listen(Engine, "before_cursor_execute", note)
        try:
            done = await registry.register_all(
                "email-service", [says(name=f"job-{n}") for n in range(count)], EMAIL
            )
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        assert [one.job.name for one in done.jobs] == [f"job-{n}" for n in range(count)]
        assert not any(one.created or one.changed or one.kept for one in done.jobs)
        return len(said)

    await registry.register_all("email-service", [says(name=f"job-{n}") for n in range(60)], EMAIL)
    before = [await state(desk, f"job-{n}") for n in range(60)]
    assert await again(60) <= await again(20) + 2
    assert [await state(desk, f"job-{n}") for n in range(60)] == before


async def test_a_set_that_is_said_again_means_what_each_would_mean_alone(
    desk: Desk, registry: Registry
) -> None:
    """Beside one of which nothing is new: a changed one, one that a person changed, a paused, a cancelled and
    a deleted one, one that somebody changed behind our back, and one that needs another."""
    names = ["same", "new cron", "person", "paused", "cancelled", "deleted", "sql", "child"]

    def said(cron: str) -> list[Declaration]:
        made = {name: says(name=name) for name in names}
        made["new cron"] = says(name="new cron", cron=cron)
        parent = wanted(name="child", depends_on=(JobId("same"),))
        made["child"] = replace(made["child"], job=parent, named=ALWAYS | {"dependsOn"})
        return list(made.values())

    await registry.register_all("email-service", said("0 9 * * 1"), EMAIL)
    await desk.jobs.change("person", lambda job: replace(job, timing=a_timing(Cron(expression="1 1 * * *"))))
    await desk.jobs.pause("paused")
    await desk.jobs.cancel("cancelled")
    await desk.jobs.remove("deleted")
    await desk.db.write(
        lambda conn: conn.execute(
            update(jobs_table)
            .where(jobs_table.c.name == "sql")
            .values(cron_expression="2 2 * * *", dirty=True)
        )
    )
    done = await registry.register_all("email-service", said("0 8 * * 1"), EMAIL)
    found = {one.job.name: one for one in done.jobs}
    assert [one.job.name for one in done.jobs] == names
    assert {name for name, one in found.items() if one.created} == {"deleted"}
    assert {name for name, one in found.items() if one.changed} == {"new cron"}
    assert {name: fields(one) for name, one in found.items() if one.kept} == {
        "person": ["cronExpression"],
        "sql": ["cronExpression"],
        "cancelled": ["status"],
    }
    assert found["paused"].job.paused
    anew = found["sql"].job.next_run_at  # of the row as it is now, though nobody has planned that yet
    assert anew is not None
    assert (anew.hour, anew.minute) == (2, 2)


async def test_one_of_many_new_jobs_that_is_wrong_says_which(registry: Registry) -> None:
    said = [says(name="one"), says(name="two", cron="0 0 30 2 *"), says(name="three")]
    with pytest.raises(Invalid, match=r"jobs\[1\]"):
        await registry.register_all("email-service", said, EMAIL)
