"""Runs a Python task in an interpreter of its own, which can be killed; see child.py for the other end."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

from noonday.domain.outcome import Completed, Failed, Outcome, Result
from noonday.domain.target import PythonTarget
from noonday.ports import Run
from noonday.targets.bounds import cut_text, with_counts
from noonday.targets.command import signal_name
from noonday.targets.output import HeadAndTail
from noonday.targets.processes import CouldNotStart, Exit, KeeperDied, Process, Processes, Spawn
from noonday.targets.reporting import Reporter
from noonday.targets.results import REPORT_VARIABLE
from noonday.targets.tasks import Task

_LAST_REPORT_SECONDS = 1.0


async def run_in_process(
    processes: Processes, run: Run, task: Task, target: PythonTarget, reporter: Reporter
) -> Outcome:
    path, file = _importable(task)
    if path is None:
        return Failed(error=f"{task.path} cannot be imported by another process", retryable=False)
    spawn = Spawn(
        argv=(sys.executable, "-m", "noonday.targets.child"),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path)},
        stdin=json.dumps(_order(run, path, file, target)).encode(),
        report=REPORT_VARIABLE,
    )
    try:
        async with processes.started(spawn, run.output) as process:
            following = asyncio.ensure_future(_follow(process.report, reporter.report))
            try:
                end = await process.wait()
                # A daemon that the task forked may hold the pipe open for ever.
                await asyncio.wait([following], timeout=_LAST_REPORT_SECONDS)
            except asyncio.CancelledError:
                await _end(process, run)
                raise
            finally:
                following.cancel()
            told = following.result() if following.done() and not following.cancelled() else None
            return _outcome(told, end, process.output)
    except CouldNotStart as exc:
        return Failed(error=cut_text(f"not started: {exc}", 500), retryable=exc.passing)
    except KeeperDied as exc:
        return Failed(error=str(exc))


def _importable(task: Task) -> tuple[str | None, str | None]:
    """The path under which another process finds the function; for a script that was started, its file."""
    module, _, qualname = task.path.partition(":")
    if module != "__main__":
        return task.path, None
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name:
        return f"{spec.name}:{qualname}", None
    file = getattr(main, "__file__", None)
    return (task.path, os.path.abspath(file)) if file else (None, None)


def _order(run: Run, path: str, file: str | None, target: PythonTarget) -> dict[str, Any]:
    execution = run.claim.execution
    return {
        "path": path,
        "file": file,
        "args": list(target.args),
        "kwargs": dict(target.kwargs),
        "context": {
            "execution_id": execution.id,
            "attempt": execution.attempt,
            "scheduled_for": execution.scheduled_for.isoformat(),
            "job_name": run.claim.job.name,
            "config": run.config,
        },
    }


async def _follow(
    reports: asyncio.StreamReader | None, report: Callable[[float | None, str | None], None]
) -> dict[str, Any] | None:
    """Pass progress on; return the last word, or None if there was none."""
    assert reports is not None
    while True:
        try:
            line = await reports.readline()
            message = json.loads(line) if line else None
        except ValueError:
            return None  # not our child's words: the task wrote to a descriptor that is not its own
        if message is None or "end" in message:
            return message
        report(message.get("fraction"), message.get("message"))


async def _end(process: Process, run: Run) -> None:
    run.keep(_result(process.output))
    with suppress(KeeperDied):
        run.keep(_result(process.output, await process.end(run.grace)))


def _result(output: HeadAndTail, end: Exit | None = None) -> Result:
    result = Result(output_tail=output.text() or None)
    return result if end is None else replace(result, usage=end.usage)


def _outcome(told: dict[str, Any] | None, end: Exit, output: HeadAndTail) -> Completed | Failed:
    result = _result(output, end)
    match told:
        case {"end": "returned", "value": value, "dropped": why_not}:
            metadata = {"value_dropped": why_not} if why_not else {}
            return Completed(result=with_counts(replace(result, value=value, metadata=metadata), value))
        case {
            "end": "raised",
            "error": error,
            "stack": stack,
            "retryable": retryable,
            "retry_after": seconds,
        }:
            wait = None if seconds is None else timedelta(seconds=seconds)
            return Failed(error=error, stack=stack, retryable=retryable, retry_after=wait, result=result)
        case {"end": "cancelled"}:
            return Failed(error="the task's process was ended by a SIGTERM from outside", result=result)
        case _:
            how = f"by {signal_name(-end.code)}" if end.code < 0 else f"with exit status {end.code}"
            return Failed(error=f"the task's process ended {how} and left no result", result=result)
