"""Tasks by name and by path."""

from __future__ import annotations

import asyncio
import os

import pytest

from noonday.domain.outcome import Completed, Failed, Parked
from noonday.targets import Targets, TargetsConfig, TaskRegistry
from noonday.targets.tasks import current, make_task, registered, task
from tests.targets.hands import a_config, a_run, call
from tests.targets.sample_tasks import tasks

HERE = "tests.targets.sample_tasks"


@pytest.fixture
def config() -> TargetsConfig:
    return a_config(tasks=tasks, task_modules=("tests.targets",))


async def test_an_unknown_task_is_parked_with_words(targets: Targets) -> None:
    outcome = await targets.run(a_run(call("no-such-task")))
    assert isinstance(outcome, Parked)
    assert "'no-such-task'" in outcome.detail
    assert "about-async" in outcome.detail
    assert not targets.knows("no-such-task")
    assert targets.knows("about-async")


async def test_a_function_is_found_by_its_path(targets: Targets) -> None:
    assert targets.knows(f"{HERE}:by_path")
    outcome = await targets.run(a_run(call(f"{HERE}:by_path", "there")))
    assert isinstance(outcome, Completed)
    assert outcome.result.value == "there"
    outcome = await targets.run(a_run(call(f"{HERE}:Holder.inner")))
    assert isinstance(outcome, Completed)
    assert outcome.result.value == 5


async def test_a_path_to_a_registered_task_runs_in_its_mode(targets: Targets) -> None:
    outcome = await targets.run(a_run(call(f"{HERE}:about_process")))
    assert isinstance(outcome, Completed)
    assert outcome.result.value["pid"] != os.getpid()


@pytest.mark.parametrize(
    "path",
    [
        f"{HERE}:missing",
        f"{HERE}:not_callable",
        f"{HERE}:",
        ":x",
        "tests.targets.nowhere:x",
        "os:system",
        "subprocess:run",
        "tests.targetsevil:x",
        "tests:x",
        f"{HERE}:__class__.__mro__",
        f"{HERE}:by_path()",
        f"{HERE}:os.system",
        f"{HERE}:subprocess.run",
        f"{HERE}:sys.modules",
        "../x:y",
        "tests.targets..x:y",
    ],
)
async def test_a_path_that_is_not_there_or_not_allowed_is_parked(path: str, targets: Targets) -> None:
    outcome = await targets.run(a_run(call(path)))
    assert isinstance(outcome, Parked)
    assert outcome.detail


async def test_by_default_nothing_may_be_called_by_path() -> None:
    targets = Targets(a_config())
    outcome = await targets.run(a_run(call("platform:node")))
    assert isinstance(outcome, Parked)
    assert "may not be called by path" in outcome.detail
    assert not targets.knows("platform:node")
    assert Targets(a_config(task_modules=("*",))).knows("platform:node")


async def test_a_module_that_breaks_on_import_is_a_failure_with_its_stack(targets: Targets) -> None:
    outcome = await targets.run(a_run(call("tests.targets.broken_module:x")))
    assert isinstance(outcome, Failed)
    assert "noonday_has_no_such_module" in outcome.error
    assert outcome.stack


def test_the_decorator_leaves_the_function_as_it_is() -> None:
    registry = TaskRegistry()

    @task(registry=registry)
    def add(a: int, b: int) -> int:
        return a + b

    assert add(1, 2) == 3
    found = registry.get("add")
    assert found is not None
    assert (found.function, found.mode) == (add, "thread")
    assert registry.names() == ["add"]


def test_a_bare_decorator_registers_with_everybody_else() -> None:
    async def only_for_this_test() -> None: ...

    assert task(only_for_this_test) is only_for_this_test
    found = registered.get("only_for_this_test")
    assert found is not None
    assert found.mode == "async"


def test_a_name_belongs_to_one_function() -> None:
    registry = TaskRegistry()
    registry.add(make_task(asyncio.sleep, "x"))
    registry.add(make_task(asyncio.sleep, "x"))
    with pytest.raises(ValueError, match="already asyncio"):
        registry.add(make_task(os.getcwd, "x"))


def test_a_mode_must_fit_its_function() -> None:
    def local() -> None: ...

    for function, mode in (
        (os.getcwd, "async"),
        (asyncio.sleep, "thread"),
        (local, "process"),
        (os.getcwd, "x"),
    ):
        with pytest.raises(ValueError, match="task"):
            make_task(function, "t", mode)  # type: ignore[arg-type]  # a wrong mode is what is tried


def test_outside_of_a_run_there_is_no_current_one() -> None:
    with pytest.raises(RuntimeError, match="no run here"):
        current()
