"""Python tasks: what they see, what becomes of their end."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path

import pytest

from noonday.domain.outcome import Completed, Failed
from noonday.targets import Targets, TargetsConfig, TaskRegistry
from noonday.targets.tasks import RunContext, current, task
from tests.targets.hands import Progress, a_config, a_run, call
from tests.targets.sample_tasks import tasks

MODES = ["async", "thread", "process"]


@pytest.fixture
def config() -> TargetsConfig:
    return a_config(tasks=tasks, task_modules=("tests.targets",))


@pytest.mark.parametrize("mode", [*MODES, "process-async"])
async def test_a_task_sees_its_run_and_reports_progress(mode: str, targets: Targets) -> None:
    progress = Progress()
    run = a_run(
        call(f"about-{mode}"), job={"name": "nightly", "config": {"a": [1]}}, execution={"attempt": 4}
    )
    run.progress = progress
    outcome = await targets.run(run)
    assert isinstance(outcome, Completed)
    seen, execution = outcome.result.value, run.claim.execution
    assert (seen["execution_id"], seen["attempt"], seen["job_name"]) == (execution.id, 4, "nightly")
    assert (seen["scheduled_for"], seen["config"]) == (execution.scheduled_for.isoformat(), {"a": [1]})
    assert seen["cancelled"] is False
    assert progress.reports[-1] == (1.0, "began")  # the newest of each; the first may have been overtaken
    assert (seen["pid"] == os.getpid()) is (not mode.startswith("process"))
    assert (seen["thread"] == threading.current_thread().name) is (mode != "thread")


async def test_it_is_one_context_however_often_it_is_asked_for() -> None:
    registry = TaskRegistry()
    seen: list[RunContext] = []

    async def ask() -> None:
        seen.append(current())

    @task("asks", registry=registry)
    async def asks() -> None:
        early = asyncio.ensure_future(ask())
        seen.extend([current(), current()])
        await asyncio.gather(early, ask())

    assert isinstance(await Targets(a_config(tasks=registry)).run(a_run(call("asks"))), Completed)
    assert seen[0] is seen[1]
    assert seen[2:] == [seen[0], seen[0]]
    with pytest.raises(RuntimeError, match="no run here"):
        current()


async def test_only_a_coroutine_that_never_waited_leaves_its_task_tidy() -> None:
    registry = TaskRegistry()

    @task("work", registry=registry)
    async def work(how: str) -> None:
        match how:
            case "waits":
                await asyncio.sleep(0)
            case "fails":
                raise ValueError("no")
            case "cancels":
                me = asyncio.current_task()
                assert me is not None
                me.cancel()

    found: dict[str, bool] = {}

    async def look(how: str) -> None:
        run = a_run(call("work", how))
        await Targets(a_config(tasks=registry)).run(run)
        found[how] = run.tidy

    for how in ("returns", "waits", "fails", "cancels"):
        await asyncio.wait([asyncio.ensure_future(look(how))])
    assert found == {"returns": True, "waits": False, "fails": False, "cancels": False}


@pytest.mark.parametrize("mode", MODES)
async def test_arguments_and_the_returned_value_pass(mode: str, targets: Targets) -> None:
    outcome = await targets.run(a_run(call(f"divide-{mode}", 6, b=4)))
    assert isinstance(outcome, Completed)
    assert outcome.result.value == 1.5


@pytest.mark.parametrize("mode", MODES)
async def test_an_exception_is_a_failure_with_its_stack(mode: str, targets: Targets) -> None:
    outcome = await targets.run(a_run(call(f"divide-{mode}", 1, b=0)))
    assert isinstance(outcome, Failed)
    assert outcome.error == "ZeroDivisionError: division by zero"
    assert outcome.retryable
    assert "return a / b" in (outcome.stack or "")


@pytest.mark.parametrize("mode", MODES)
async def test_a_task_can_say_that_a_retry_is_no_use(mode: str, targets: Targets) -> None:
    outcome = await targets.run(a_run(call(f"refuse-{mode}")))
    assert isinstance(outcome, Failed)
    assert (outcome.error, outcome.retryable, outcome.retry_after) == ("no use", False, timedelta(seconds=7))


@pytest.mark.parametrize("mode", MODES)
async def test_a_task_that_exits_does_not_end_the_scheduler(mode: str, targets: Targets) -> None:
    outcome = await targets.run(a_run(call(f"exit-{mode}")))
    assert isinstance(outcome, Failed)
    assert outcome.error == "the task called sys.exit(3)"


@pytest.mark.parametrize("mode", MODES)
async def test_a_value_that_is_not_json_is_dropped_and_named(mode: str, targets: Targets) -> None:
    outcome = await targets.run(a_run(call(f"set-{mode}")))
    assert isinstance(outcome, Completed)
    assert outcome.result.value is None
    assert outcome.result.metadata == {"value_dropped": "set is not JSON"}


@pytest.mark.parametrize("mode", MODES)
async def test_arguments_that_do_not_fit_fail_at_once(mode: str, targets: Targets) -> None:
    for target in (call(f"divide-{mode}"), call(f"divide-{mode}", 1, c=2), call(f"divide-{mode}", 1, 2, 3)):
        outcome = await targets.run(a_run(target))
        assert isinstance(outcome, Failed)
        assert not outcome.retryable
        assert "arguments do not fit" in outcome.error


async def test_usage_is_known_of_threads_and_processes(targets: Targets) -> None:
    thread = await targets.run(a_run(call("divide-thread", 1)))
    process = await targets.run(a_run(call("divide-process", 1)))
    assert isinstance(thread, Completed)
    assert isinstance(process, Completed)
    assert thread.result.usage.cpu_time_ms is not None
    assert (process.result.usage.cpu_time_ms or 0) > 0
    assert (process.result.usage.memory_peak_mb or 0) > 5
    assert process.result.output_tail == "dividing 1 by 1\n"


@pytest.mark.parametrize(("name", "how"), [("vanish", "exit status 9"), ("crash", "SIGABRT")])
async def test_a_process_that_dies_leaves_a_clear_failure(name: str, how: str, targets: Targets) -> None:
    outcome = await targets.run(a_run(call(name)))
    assert isinstance(outcome, Failed)
    assert how in outcome.error
    assert outcome.retryable
    if name == "vanish":
        assert outcome.result.output_tail == "last words\n"


async def test_many_reports_cost_little_and_the_last_arrives(targets: Targets) -> None:
    progress = Progress()
    outcome = await targets.run(a_run(call("many-reports"), progress=progress))
    assert isinstance(outcome, Completed)
    assert progress.reports[-1] == (1.0, "done")
    assert len(progress.reports) <= 5_001


async def test_a_listener_that_fails_does_not_fail_the_run(targets: Targets) -> None:
    async def broken(fraction: float | None, message: str | None) -> None:
        raise RuntimeError("the store is away")

    outcome = await targets.run(a_run(call("about-thread"), progress=broken))
    assert isinstance(outcome, Completed)


async def test_threads_inside_a_process_belong_to_its_run(targets: Targets) -> None:
    run = a_run(call("threads-inside"))
    outcome = await targets.run(run)
    assert isinstance(outcome, Completed)
    assert outcome.result.value == [run.claim.execution.id]


SCRIPT = """
import asyncio, os, sys
from noonday.targets import Targets
from noonday.targets.tasks import task, registered
from tests.targets.hands import a_config, a_run
from noonday.domain.target import PythonTarget

@task(mode="process")
def heavy():
    return [os.getpid(), __name__]

async def main():
    targets = Targets(a_config(tasks=registered))
    outcome = await targets.run(a_run(PythonTarget(task="heavy")))
    await targets.close()
    pid, name = outcome.result.value
    assert pid != os.getpid() and name != "__main__", outcome
    print("fine")

if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.asyncio(loop_factories=["asyncio"])
async def test_a_task_of_a_script_runs_in_a_process_too(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)}
    done = await asyncio.to_thread(
        subprocess.run, [sys.executable, str(script)], capture_output=True, text=True, env=env, check=False
    )
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr
