"""Short runs share a task, one after the other, and no run sees anything of the one before it."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any

import pytest
import structlog

from noonday.domain.execution import ExecutionState
from noonday.domain.schedule import Immediate
from noonday.engine.slots import Slots
from noonday.store import history
from noonday.targets.tasks import current
from noonday.telemetry.logs import what_is_told
from noonday.testing import ManualInstance

LEFT: ContextVar[str | None] = ContextVar("left", default=None)
MANY = 40


@pytest.fixture
def claimed_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are claimed far ahead, as those of a worker that has seen many short ones."""
    monkeypatch.setattr("noonday.engine.pace._START", 0.0)


async def run_all(scheduler: ManualInstance, count: int = MANY) -> set[ExecutionState]:
    for number in range(count):
        await scheduler.add(f"job-{number:02}", Immediate(), "work")
    await scheduler.tick(seconds=5)
    page = await scheduler.db.read(history.page)
    assert page.total == count
    return {run.state for run in page.items}


@pytest.mark.usefixtures("claimed_ahead")
async def test_short_runs_share_tasks_and_nothing_else(db_url: str) -> None:
    async with ManualInstance(db_url, slots=1) as scheduler:
        tasks: list[Any] = []
        left: list[str | None] = []
        names: list[str] = []

        @scheduler.task
        async def work() -> None:
            tasks.append(asyncio.current_task())
            left.append(LEFT.get())
            names.append(current().job_name)
            LEFT.set(current().job_name)

        assert await run_all(scheduler) == {ExecutionState.COMPLETED}
        assert len(set(tasks)) < MANY / 4
        assert left == [None] * MANY
        assert sorted(names) == [f"job-{number:02}" for number in range(MANY)]


@pytest.mark.usefixtures("claimed_ahead")
async def test_whoever_waited_leaves_its_task_to_nobody(db_url: str) -> None:
    async with ManualInstance(db_url, slots=1) as scheduler:
        tasks: list[Any] = []

        @scheduler.task
        async def work() -> None:
            tasks.append(asyncio.current_task())
            await asyncio.sleep(0)

        assert await run_all(scheduler) == {ExecutionState.COMPLETED}
        assert len(set(tasks)) == MANY


@pytest.mark.usefixtures("claimed_ahead")
async def test_a_run_that_cancels_its_own_task_harms_no_other(db_url: str) -> None:
    async with ManualInstance(db_url, slots=1) as scheduler:
        ran = 0

        @scheduler.task
        async def work() -> None:
            nonlocal ran
            ran += 1
            if ran % 2:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            else:
                await asyncio.sleep(0)

        assert await run_all(scheduler) == {ExecutionState.COMPLETED}
        assert ran == MANY


@pytest.mark.usefixtures("claimed_ahead")
async def test_the_loop_has_its_turn_between_many_short_runs(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[int] = []
    started = Slots._start

    def counted(slots: Slots, held: Any) -> None:
        rounds.append(len(ran))
        started(slots, held)

    async with ManualInstance(db_url, slots=1) as scheduler:
        ran: list[str] = []
        monkeypatch.setattr(Slots, "_start", counted)

        @scheduler.task
        async def work() -> None:
            ran.append(current().job_name)

        await run_all(scheduler)
        assert len(rounds) > 2
        assert max(after - before for before, after in zip(rounds, [*rounds[1:], MANY], strict=True)) <= 17


@pytest.mark.usefixtures("claimed_ahead")
async def test_a_row_of_runs_ends_when_the_store_has_answered_somebody(
    db_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ManualInstance(db_url, slots=1) as scheduler:
        tasks: list[Any] = []

        @scheduler.task
        async def work() -> None:
            tasks.append(asyncio.current_task())

        monkeypatch.setattr("noonday.engine.breath.Breath.expected", True)
        assert await run_all(scheduler) == {ExecutionState.COMPLETED}
        assert len(set(tasks)) == MANY


@pytest.mark.usefixtures("claimed_ahead")
async def test_every_line_of_a_run_tells_whose_it_is(db_url: str) -> None:
    lines: list[dict[str, Any]] = []

    def keep(_: object, __: str, event: Any) -> Any:
        lines.append(dict(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[what_is_told, keep], cache_logger_on_first_use=False)
    try:
        async with ManualInstance(db_url, slots=1) as scheduler:
            ids: dict[str, str] = {}

            @scheduler.task
            async def work() -> None:
                ids[current().job_name] = current().execution_id
                structlog.get_logger().info("hello")

            await run_all(scheduler, 3)
    finally:
        structlog.configure(**before)
    said = {line["job"]: line["execution_id"] for line in lines if line.get("event") == "hello"}
    assert said == ids
    assert len(said) == 3
