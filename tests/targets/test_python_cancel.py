"""Python tasks that are cancelled, in every mode."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from noonday.domain.outcome import Completed, Failed
from noonday.domain.target import PythonTarget
from noonday.targets import Targets, TargetsConfig, TaskRegistry
from noonday.targets.tasks import TaskCancelled, current, task
from tests.targets.hands import Progress, a_config, a_run, alive, call, ended_by_cancel
from tests.targets.sample_tasks import tasks


async def _started(
    targets: Targets, target: PythonTarget, **changes: Any
) -> tuple[Any, asyncio.Future[Any], Progress]:
    progress = Progress()
    run = a_run(target, progress=progress, **changes)
    running = asyncio.ensure_future(targets.run(run))
    await asyncio.wait(
        [running, asyncio.ensure_future(progress.first.wait())], return_when=asyncio.FIRST_COMPLETED
    )
    assert not running.done(), running.result()
    return run, running, progress


@pytest.fixture
def config() -> TargetsConfig:
    return a_config(tasks=tasks, task_modules=("tests.targets",))


async def test_cancelling_a_coroutine_runs_its_finally() -> None:
    ended = asyncio.Event()
    registry = TaskRegistry()

    @task("wait", registry=registry)
    async def wait() -> None:
        current().progress(0.5)
        try:
            await asyncio.Event().wait()
        finally:
            assert current().cancelled
            ended.set()

    targets = Targets(a_config(tasks=registry))
    _, running, _ = await _started(targets, call("wait"))
    await ended_by_cancel(running)
    assert ended.is_set()


async def test_a_coroutine_cancelled_from_inside_is_a_failure_not_a_cancellation() -> None:
    registry = TaskRegistry()

    @task("inner", registry=registry)
    async def inner() -> None:
        raise asyncio.CancelledError

    outcome = await Targets(a_config(tasks=registry)).run(a_run(call("inner")))
    assert isinstance(outcome, Failed)
    assert "CancelledError" in outcome.error


async def test_a_cancelled_thread_is_told_and_its_result_is_kept() -> None:
    registry = TaskRegistry()
    told = threading.Event()

    @task("polite", registry=registry)
    def polite() -> None:
        current().progress(0.1)
        try:
            while True:
                current().raise_if_cancelled()
        except Exception:
            raise AssertionError("a cancellation passes through `except Exception`") from None
        except TaskCancelled:
            told.set()
            raise

    targets = Targets(a_config(tasks=registry))
    run, running, _ = await _started(targets, call("polite"))
    await ended_by_cancel(running)
    assert told.is_set()
    assert run.partial.usage.cpu_time_ms is not None
    assert run.partial.metadata == {}


async def test_a_thread_that_does_not_hear_is_left_alone_and_said_to_run() -> None:
    registry = TaskRegistry()
    let_go, gone = threading.Event(), threading.Event()

    @task("deaf", registry=registry)
    def deaf() -> None:
        current().progress(0.1)
        let_go.wait()
        gone.set()

    @task("next", registry=registry)
    def following() -> str:
        return "ran"

    targets = Targets(a_config(tasks=registry, thread_slots=1))
    run, running, _ = await _started(targets, call("deaf"), grace=timedelta(seconds=0.05))
    await ended_by_cancel(running)
    assert "still running" in run.partial.metadata["thread"]
    waiting = asyncio.ensure_future(targets.run(a_run(call("next"))))
    await asyncio.sleep(0)
    assert not waiting.done()  # its slot is still taken: threads are bounded
    let_go.set()
    outcome = await waiting
    assert isinstance(outcome, Completed)
    assert gone.is_set()


async def test_a_task_that_raises_cancelled_by_itself_has_failed() -> None:
    registry = TaskRegistry()

    @task("self", registry=registry)
    def itself() -> None:
        raise TaskCancelled

    outcome = await Targets(a_config(tasks=registry)).run(a_run(call("self")))
    assert isinstance(outcome, Failed)
    assert "nobody had cancelled" in outcome.error


async def test_cancelling_a_process_ends_its_group_politely(tmp_path: Path, targets: Targets) -> None:
    marker = tmp_path / "marker"
    run, running, progress = await _started(targets, call("spin", str(marker)))
    pids = [int(pid) for pid in (progress.reports[0][1] or "").split()]
    assert all(map(alive, pids))
    await ended_by_cancel(running)
    assert not any(map(alive, pids))
    assert marker.read_text() == "finally"
    assert run.partial.output_tail == "spinning\n"
    assert (run.partial.usage.cpu_time_ms or 0) > 0


async def test_a_coroutine_in_a_process_is_cancelled_as_a_coroutine(tmp_path: Path, targets: Targets) -> None:
    marker = tmp_path / "marker"
    _, running, progress = await _started(targets, call("wait-process-async", str(marker)))
    await ended_by_cancel(running)
    assert not alive(int(progress.reports[0][1] or 0))
    assert marker.read_text() == "finally True"


async def test_a_process_that_does_not_hear_is_killed_after_the_grace(targets: Targets) -> None:
    _, running, progress = await _started(targets, call("deaf"), grace=timedelta(seconds=0.2))
    await ended_by_cancel(running)
    assert not alive(int(progress.reports[0][1] or 0))


@pytest.fixture(autouse=True)
async def no_thread_is_left() -> AsyncIterator[None]:
    before = set(threading.enumerate())
    yield
    left = [t for t in threading.enumerate() if t not in before and t.name.startswith("noonday-")]
    for thread in left:
        thread.join(10)
    assert not [t for t in left if t.is_alive()]
