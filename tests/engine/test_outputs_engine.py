"""From a run's words to the store: batched, in order, kept over a store that fails, over when the run is."""

from __future__ import annotations

from contextlib import suppress

import pytest
from sqlalchemy import Connection

from noonday.control.outputs import Outputs, Reading
from noonday.domain.execution import ExecutionState
from noonday.domain.schedule import Immediate
from noonday.store import events
from noonday.store.events import Event
from noonday.targets.tasks import RunContext, current
from noonday.testing import ManualInstance


def outputs(scheduler: ManualInstance) -> Outputs:
    return Outputs(scheduler.db, scheduler.clock)


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
    assert (text_of(late), late.ended) == ("one\ntwo\n", False)  # a last word may still be on its way
    rest = await outputs(scheduler).read(late.execution.id, after=early.next)
    assert text_of(rest) == "two\n"

    await scheduler.tick(seconds=10)
    over = await of_only(scheduler, "talks")
    assert (text_of(over), over.ended) == ("one\ntwo\n", True)


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


async def _fails(_: object) -> None:
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
