"""Python tasks: the decorator that names them, the registry that holds them, and what they see of their run.

    @task
    async def refresh(): ...

    @task("nightly-report", mode="process")
    def report(year: int) -> dict[str, int]:
        for done, part in enumerate(parts, 1):
            current().progress(done / len(parts), f"{part} done")
        return {"items_processed": len(parts)}

Modes: `async` runs in the scheduler's loop, `thread` off it, `process` in a process of its own that can be
killed; `auto` (the default) is async for coroutine functions and thread for all others.

What a task returns is kept if it is JSON. A value that is not leaves the run completed, for the work was
done, with a note in its metadata. Raising is failing: TaskFailed says more precisely how.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol, TypeVar, overload

Mode = Literal["auto", "async", "thread", "process"]
Function = TypeVar("Function", bound=Callable[..., Any])


class TaskFailed(Exception):
    """A task raises it to say whether, and when, a retry is worth it."""

    def __init__(self, message: str, *, retryable: bool = True, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after


class TaskCancelled(BaseException):
    """The run was cancelled. Like asyncio's own, it passes through `except Exception`."""


@dataclass(slots=True)  # not frozen: that takes three times as long to make
class RunContext:
    """The run a task is part of; the same in all modes."""

    execution_id: str
    attempt: int
    scheduled_for: datetime
    job_name: str
    config: Any
    report: Callable[[float | None, str | None], None] = field(repr=False)
    write: Callable[[str], None] = field(repr=False)
    asked_to_stop: Callable[[], int] = field(repr=False)  # how often

    def progress(self, fraction: float | None = None, message: str | None = None) -> None:
        """Cheap and safe to call often, from any thread; only the newest report need arrive."""
        if fraction is not None:
            fraction = None if math.isnan(fraction) else min(1.0, max(0.0, float(fraction)))
        self.report(fraction, None if message is None else str(message)[:500])

    def output(self, text: str) -> None:
        """Lines for those who watch the run, now and later; cheap, and safe from any thread."""
        text = str(text)
        self.write(text if text.endswith("\n") else f"{text}\n")

    @property
    def cancelled(self) -> bool:
        return self.asked_to_stop() > 0

    def raise_if_cancelled(self) -> None:
        """A thread cannot be stopped from outside: a long blocking task calls this between its steps."""
        if self.asked_to_stop():
            raise TaskCancelled("the run was cancelled")


class Maker(Protocol):
    """Makes the context of a run for whoever asks: most tasks never do."""

    def context(self) -> RunContext: ...


_of_this_run: ContextVar[RunContext | Maker] = ContextVar("noonday_run")
_of_this_process: list[RunContext] = []  # in a task's own process every thread belongs to the one run


def current() -> RunContext:
    """The run that this code is part of; raises RuntimeError outside of one."""
    found = _of_this_run.get(None)
    if found is None and _of_this_process:
        found = _of_this_process[0]
    if found is None:
        raise RuntimeError("no run here: current() works inside a task that the scheduler runs")
    if not isinstance(found, RunContext):
        found = found.context()
        _of_this_run.set(found)
    return found


# For good: to be called in a context that is the run's own.
make_current: Callable[[RunContext | Maker], object] = _of_this_run.set


class running:
    """`with running(context):` makes it the `current()` one."""

    __slots__ = ("_context", "_token")

    def __init__(self, context: RunContext) -> None:
        self._context = context

    def __enter__(self) -> None:
        self._token = _of_this_run.set(self._context)

    def __exit__(self, *_: object) -> None:
        _of_this_run.reset(self._token)


def claim_process(context: RunContext) -> None:
    _of_this_process[:] = [context]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    name: str
    function: Callable[..., Any]
    mode: Literal["async", "thread", "process"]

    @property
    def path(self) -> str:
        return f"{self.function.__module__}:{self.function.__qualname__}"


def make_task(function: Callable[..., Any], name: str | None = None, mode: Mode = "auto") -> Task:
    """Raises ValueError where the mode does not fit the function."""
    if not callable(function):
        raise ValueError(f"task {name!r}: {function!r} is not a function")
    coroutine = inspect.iscoroutinefunction(function)
    task_name = name or function.__name__
    if mode == "auto":
        mode = "async" if coroutine else "thread"
    if mode not in ("async", "thread", "process"):
        raise ValueError(f"task {task_name!r}: {mode!r} is none of auto, async, thread, process")
    if mode == "async" and not coroutine:
        raise ValueError(f"task {task_name!r}: mode async needs an `async def` function")
    if mode == "thread" and coroutine:
        raise ValueError(f"task {task_name!r}: a coroutine function cannot run in a thread")
    if mode == "process" and "<" in function.__qualname__:
        raise ValueError(f"task {task_name!r}: mode process needs a function that can be imported")
    return Task(name=task_name, function=function, mode=mode)


class TaskRegistry:
    """Name -> task. A function may be registered again under its name, another one may not take it."""

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def add(self, task: Task) -> Task:
        known = self._tasks.get(task.name)
        if known is not None and known.path != task.path:
            raise ValueError(f"task {task.name!r} is already {known.path}, so {task.path} needs another name")
        self._tasks[task.name] = task
        return task

    def get(self, name: str) -> Task | None:
        return self._tasks.get(name)

    def by_path(self, path: str) -> Task | None:
        return next((task for task in self._tasks.values() if task.path == path), None)

    def names(self) -> list[str]:
        return sorted(self._tasks)

    def __contains__(self, name: object) -> bool:
        return name in self._tasks


registered = TaskRegistry()


@overload
def task(function: Function, /) -> Function: ...
@overload
def task(
    name: str | None = None, /, *, mode: Mode = "auto", registry: TaskRegistry = registered
) -> Callable[[Function], Function]: ...
def task(
    given: Any = None, /, *, mode: Mode = "auto", registry: TaskRegistry = registered
) -> Callable[..., Any]:
    """Register a function as a task, under its own name or the given one; the function stays as it is."""
    if callable(given):
        registry.add(make_task(given, None, mode))
        return given  # type: ignore[no-any-return]  # the overloads give the caller its exact type

    def register(function: Function) -> Function:
        registry.add(make_task(function, given, mode))
        return function

    return register
