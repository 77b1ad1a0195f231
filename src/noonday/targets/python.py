"""Runs Python tasks: coroutines in the loop, blocking functions in threads, heavy ones in processes."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from contextvars import copy_context
from functools import lru_cache, partial
from typing import Any

from noonday.domain.outcome import Failed, Outcome, Result
from noonday.domain.target import PythonTarget
from noonday.ports import Run
from noonday.targets.apart import Apart
from noonday.targets.config import TargetsConfig
from noonday.targets.lookup import find_task, knows_task
from noonday.targets.processes import Processes
from noonday.targets.reporting import Reporter
from noonday.targets.results import raised, returned
from noonday.targets.task_process import run_in_process
from noonday.targets.tasks import RunContext, Task, make_current, running
from noonday.targets.threads import Ended, Threads


class PythonRunner:
    def __init__(self, config: TargetsConfig, processes: Processes) -> None:
        self._config = config
        self._processes = processes
        self._threads = Threads(config.thread_slots)

    def knows(self, task: str) -> bool:
        return knows_task(task, self._config.tasks, self._config.task_modules)

    def run(self, run: Run, target: PythonTarget) -> Awaitable[Outcome]:
        task = self._config.tasks.get(target.task)
        if task is not None and task.mode == "async":
            return _in_loop(run, task, target)
        return self._find_and_run(run, target)

    async def _find_and_run(self, run: Run, target: PythonTarget) -> Outcome:
        task = await find_task(target.task, self._config.tasks, self._config.task_modules)
        if not isinstance(task, Task):
            return task
        if task.mode == "async":
            return await _in_loop(run, task, target)
        reporter, returned = Reporter(run, _task_of(run)), False
        try:
            outcome = await self._off_the_loop(run, task, target, reporter)
            returned = True
            return outcome
        finally:
            reporter.over = True
            if reporter.spoken:
                await reporter.end(deliver=returned)

    async def _off_the_loop(self, run: Run, task: Task, target: PythonTarget, reporter: Reporter) -> Outcome:
        if task.mode == "thread":
            return await self._in_thread(run, task, target, reporter)
        if misfit := _misfit(task, target):  # before a whole process is started for it
            return misfit
        return await run_in_process(self._processes, run, task, target, reporter)

    async def _in_thread(self, run: Run, task: Task, target: PythonTarget, reporter: Reporter) -> Outcome:
        """A thread can only be asked to stop; one that does not hear is left alone; the result says so."""
        stop = threading.Event()
        context = reporter.context(stop.is_set)
        work = partial(_call_within, context, partial(task.function, *target.args, **target.kwargs))
        thread = await self._threads.start(task.name, work)
        try:
            await asyncio.wait([thread])
        except asyncio.CancelledError:
            stop.set()
            run.keep(_still_running())
            await asyncio.wait([thread], timeout=run.grace.total_seconds())
            if thread.done():
                run.keep(_partial(thread.result()))
            raise
        end = thread.result()
        if end.error is None:
            return returned(end.value, end.usage)
        return _failure(end.error, task, target) or raised(end.error, end.usage)


async def _in_loop(run: Run, task: Task, target: PythonTarget) -> Outcome:
    me = _task_of(run)
    reporter, own = Reporter(run, me), copy_context()
    own.run(make_current, reporter)
    outcome: Outcome | None = None
    try:
        work = task.function(*target.args, **target.kwargs)
        try:
            awaited = own.run(work.send, None)
        except StopIteration as end:  # it never waited for anything
            run.tidy = not me.cancelling()
            outcome = returned(end.value)
        else:
            outcome = returned(await Apart(work, own, awaited))
    except asyncio.CancelledError as exc:
        if me.cancelling() > 0:
            raise
        outcome = raised(exc)  # something inside was cancelled; nobody has cancelled the run
    except BaseException as exc:  # sys.exit() in a task must not end the scheduler
        outcome = _failure(exc, task, target) or raised(exc)
    finally:
        reporter.over = True
        if reporter.spoken:
            await reporter.end(deliver=outcome is not None)
    return outcome


def _task_of(run: Run) -> asyncio.Task[Any]:
    me = run.task or asyncio.current_task()
    assert me is not None
    return me


def _call_within(context: RunContext, work: Callable[[], Any]) -> Any:
    with running(context):
        return work()


def _failure(exc: BaseException, task: Task, target: PythonTarget) -> Failed | None:
    """Was it never called, because its arguments do not fit? Asked only afterwards: they nearly always do."""
    return _misfit(task, target) if isinstance(exc, TypeError) else None


def _misfit(task: Task, target: PythonTarget) -> Failed | None:
    try:
        _signature(task.function).bind(*target.args, **target.kwargs)
    except TypeError as exc:
        return Failed(error=f"the arguments do not fit {target.task}: {exc}", retryable=False)
    except ValueError:
        return None  # built in C, without a signature: calling it has told
    return None


@lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _still_running() -> Result:
    return Result(metadata={"thread": "still running: it did not stop when asked (see raise_if_cancelled)"})


def _partial(end: Ended) -> Result:
    return returned(end.value, end.usage).result if end.error is None else Result(usage=end.usage)
