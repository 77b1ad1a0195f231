"""From a run's words to the store: batched, in order, kept over a store that fails, over when the run is."""

from __future__ import annotations

import resource
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import Connection

from noonday.control.outputs import Outputs, Reading
from noonday.domain.execution import ExecutionState
from noonday.domain.job import RetryPolicy
from noonday.domain.output import HEAD, TAIL
from noonday.domain.schedule import Immediate
from noonday.domain.target import CommandTarget, PythonTarget
from noonday.store import events
from noonday.store.events import Event
from noonday.store.executions import Ends
from noonday.store.trying import CommitUnknown
from noonday.targets.tasks import RunContext, current
from noonday.testing import ManualInstance


def outputs(scheduler: ManualInstance) -> Outputs:
    return Outputs(scheduler.db)


async def of_only(scheduler: ManualInstance, name: str) -> Reading:
    [run] = await scheduler.history(name)
    return await outputs(scheduler).read(run.id)


def text_of(reading: Reading) -> str:
    return "".join(one.piece.text for one in reading.written)


async def test_it_is_read_while_the_run_goes_on(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        current().output("one")
        await scheduler.clock.sleep(10)
        current().output("two")

    await scheduler.add("talks", Immediate(), "work")
    await scheduler.tick(seconds=1)
    early = await of_only(scheduler, "talks")
    assert (text_of(early), early.ended) == ("one\n", False)

    await scheduler.tick(seconds=10)
    late = await of_only(scheduler, "talks")
    assert (text_of(late), late.ended) == ("one\ntwo\n", True)
    rest = await outputs(scheduler).read(late.execution.id, after=early.next)
    assert text_of(rest) == "two\n"


async def test_nothing_is_left_of_a_run_that_fell_silent_before_its_end(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        current().output("one")
        await scheduler.clock.sleep(10)

    await scheduler.add("talks", Immediate(), "work")
    await scheduler.tick(seconds=1)
    assert scheduler.engine.outputs.busy
    await scheduler.tick(seconds=20)
    assert not scheduler.engine.outputs.busy


async def test_listeners_are_told(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        current().output("hello \x00")

    await scheduler.add("talks", Immediate(), "work")
    await scheduler.tick(seconds=1)
    [run] = await scheduler.history("talks")

    def look(conn: Connection) -> tuple[Event, ...]:
        return events.look(conn, lambda event: event, 0, 100).events

    [told] = [event for event in await scheduler.db.read(look) if event.kind == "output.written"]
    assert (told.execution_id, told.job_id) == (run.id, run.job_id)
    assert told.payload == {"attempt": 1, "next": len("hello ?\n")}


async def test_a_store_that_fails_costs_no_line(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    @scheduler.task
    async def work() -> None:
        current().output("before")
        await scheduler.clock.sleep(5)
        current().output("after")
        await scheduler.clock.sleep(5)

    await scheduler.add("talks", Immediate(), "work")
    actor = scheduler.engine.outputs
    real = actor.run_once

    async def away() -> None:
        """Tries, and finds the store away."""
        with monkeypatch.context() as broken, suppress(ConnectionError):
            broken.setattr(scheduler.db, "write", _fails)
            await real()

    monkeypatch.setattr(actor, "run_once", away)
    await scheduler.tick(seconds=1)
    assert text_of(await of_only(scheduler, "talks")) == ""
    monkeypatch.setattr(actor, "run_once", real)
    await scheduler.tick(seconds=20)
    assert text_of(await of_only(scheduler, "talks")) == "before\nafter\n"


async def _fails(_: object, **how: bool) -> None:
    raise ConnectionError


async def test_a_run_that_is_over_is_not_heard(scheduler: ManualInstance) -> None:
    kept: list[RunContext] = []

    @scheduler.task
    async def work() -> None:
        kept.append(current())
        current().output("in time")

    await scheduler.add("talks", Immediate(), "work")
    await scheduler.tick(seconds=1)
    kept[0].output("too late")
    await scheduler.tick(seconds=10)
    reading = await of_only(scheduler, "talks")
    assert reading.execution.state is ExecutionState.COMPLETED
    assert text_of(reading) == "in time\n"
    assert not scheduler.engine.outputs.busy


async def test_the_end_is_told_behind_the_last_words(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hears of the end finds all of the output, however slowly it is written."""
    actor, settler = scheduler.engine.outputs, scheduler.engine.settler
    found: list[str] = []
    write = settler._write

    async def look(batch: Sequence[Any]) -> Ends:
        found.extend([text_of(await outputs(scheduler).read(one.ending.execution_id)) for one in batch])
        return await write(batch)

    monkeypatch.setattr(settler, "_write", look)

    @scheduler.task
    async def work() -> None:
        current().output("one")
        await scheduler.clock.sleep(1)
        current().output("last words")

    await scheduler.add("talks", Immediate(), "work")
    await scheduler.tick(seconds=5)
    assert found == ["one\nlast words\n"]
    assert not actor.busy


async def test_a_store_that_hangs_keeps_no_end_from_being_told(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("noonday.engine.outputs._LAST_WORDS_WITHIN", 0.05)
    actor = scheduler.engine.outputs
    real = actor.run_once

    async def hangs() -> None:
        """Nothing is ever stored."""

    monkeypatch.setattr(actor, "run_once", hangs)

    @scheduler.task
    async def work() -> None:
        current().output("unheard")

    await scheduler.add("talks", Immediate(), "work")
    await scheduler.tick(seconds=1)
    [run] = await scheduler.history("talks")
    assert run.state is ExecutionState.COMPLETED
    monkeypatch.setattr(actor, "run_once", real)
    await real()
    assert text_of(await of_only(scheduler, "talks")) == "unheard\n"  # late, and not lost


async def test_a_commit_whose_answer_is_lost_is_not_written_twice(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was stored after all; what is said next stands behind it, not instead of it."""
    actor = scheduler.engine.outputs
    real, write = actor.run_once, scheduler.db.write

    async def stored_unheard(work: Callable[[Connection], object], **how: bool) -> object:
        await write(work, **how)
        raise CommitUnknown

    async def unheard() -> None:
        with monkeypatch.context() as broken, suppress(CommitUnknown):
            broken.setattr(scheduler.db, "write", stored_unheard)
            await real()

    @scheduler.task
    async def work() -> None:
        current().output("one")
        await scheduler.clock.sleep(5)
        current().output("two")
        await scheduler.clock.sleep(5)

    await scheduler.add("talks", Immediate(), "work")
    monkeypatch.setattr(actor, "run_once", unheard)
    await scheduler.tick(seconds=6)
    monkeypatch.setattr(actor, "run_once", real)
    await scheduler.tick(seconds=10)
    reading = await of_only(scheduler, "talks")
    assert (text_of(reading), reading.ended) == ("one\ntwo\n", True)


async def test_a_flood_of_some_does_not_silence_the_others(
    scheduler: ManualInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction holds what one of them writes; each gets its turn all the same."""
    monkeypatch.setattr("noonday.engine.outputs._BATCH", 1000)
    said: list[RunContext] = []

    @scheduler.task
    async def work() -> None:
        said.append(current())
        await scheduler.clock.sleep(5)

    for number in range(3):
        await scheduler.add(f"job-{number}", Immediate(), "work")
    await scheduler.tick(seconds=1)
    for _ in range(3):
        for run in said:
            run.output("x" * 2000)
        await scheduler.engine.outputs.run_once()
    for number in range(3):
        assert text_of(await of_only(scheduler, f"job-{number}"))


async def test_the_secrets_of_the_job_are_masked(scheduler: ManualInstance) -> None:
    """Even where one comes in two parts; in what is left of it and in the error too."""

    @scheduler.task
    async def work(token: str, url: str) -> None:
        write = current().write
        write("the token is hunter")
        await scheduler.clock.sleep(1)
        write("22, and hunter 2 is none\n")
        write(f"{url}\nbyes")
        raise RuntimeError("hunter22 was refused")

    target = PythonTarget(task="work", kwargs={"token": "hunter22", "url": "amqp://me:byesecret@host/"})
    await scheduler.add("talks", Immediate(), target, retry=RetryPolicy(max_retries=0))
    await scheduler.tick(seconds=5)
    reading = await of_only(scheduler, "talks")
    assert text_of(reading) == ("the token is ********, and hunter 2 is none\namqp://me:********@host/\nbyes")
    assert reading.execution.error == "RuntimeError: ******** was refused"
    assert "hunter22" not in (reading.execution.stack or "")


async def test_threads_that_outlive_their_run_leave_nothing_behind(scheduler: ManualInstance) -> None:
    kept: list[RunContext] = []

    @scheduler.task
    async def work() -> None:
        kept.append(current())

    await scheduler.add("silent", Immediate(), "work")
    await scheduler.tick(seconds=1)
    kept[0].output("too late")
    assert not scheduler.engine.outputs.busy
    assert text_of(await of_only(scheduler, "silent")) == ""


async def test_a_million_lines_stay_within_bounds(scheduler: ManualInstance) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    await scheduler.add("floods", Immediate(), CommandTarget(argv=("seq", "1000000")))
    await scheduler.tick(seconds=1)
    [run] = await scheduler.history("floods")
    assert run.state is ExecutionState.COMPLETED
    text = await outputs(scheduler).whole(run.id)
    assert text.startswith("1\n2\n3\n")
    assert text.endswith("\n999999\n1000000\n")
    assert len(text) < 2 * (HEAD + TAIL)
    assert "characters left out" in text
    last = (await outputs(scheduler).read(run.id, after=6_888_896 - 100)).written[-1].piece
    assert last.line + last.text.count("\n") == 1_000_000  # numbers count what was left out
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 64 * 1024, f"{grown} KiB more"


async def test_bytes_that_are_no_text_do_no_harm(scheduler: ManualInstance) -> None:
    script = r"printf '\000\377one\r two\303\nlast \342\202'"
    await scheduler.add("binary", Immediate(), CommandTarget(argv=("sh", "-c", script)))
    await scheduler.tick(seconds=1)
    reading = await of_only(scheduler, "binary")
    bad = "\N{REPLACEMENT CHARACTER}"
    assert text_of(reading) == f"{bad}{bad}one\r two{bad}\nlast {bad}"


async def test_what_was_said_before_a_time_out_is_kept(scheduler: ManualInstance) -> None:
    @scheduler.task
    async def work() -> None:
        current().output("begun")
        await scheduler.clock.sleep(100)

    job = {"timeout": timedelta(seconds=5), "retry": RetryPolicy(max_retries=1, backoff=timedelta(seconds=1))}
    await scheduler.add("slow", Immediate(), "work", **job)
    await scheduler.tick(seconds=30)
    [run] = await scheduler.history("slow")
    for attempt in (1, 2):
        reading = await outputs(scheduler).read(run.id, attempt)
        assert (text_of(reading), reading.ended) == ("begun\n", True)
