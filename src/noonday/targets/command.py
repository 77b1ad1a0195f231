"""Runs an argument list as a process: no shell, a clean environment, limits, the end of its whole session."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import suppress

from noonday.domain.outcome import Completed, Failed, Outcome, Result
from noonday.domain.target import CommandTarget
from noonday.ports import Run
from noonday.targets.bounds import cut_text
from noonday.targets.config import TargetsConfig
from noonday.targets.headers import rfc3339, traceparent
from noonday.targets.output import HeadAndTail
from noonday.targets.processes import CouldNotStart, Exit, KeeperDied, Processes, Spawn

_LONGEST_VARIABLE = 100_000  # Linux takes 128 KiB for one


class CommandRunner:
    def __init__(self, config: TargetsConfig, processes: Processes) -> None:
        self._config = config
        self._processes = processes

    async def run(self, run: Run, target: CommandTarget) -> Outcome:
        """What the command starts in the background and leaves behind is ended with it."""
        if not target.argv or not target.argv[0]:
            return Failed(error="not started: the argument list is empty", retryable=False)
        spawn = Spawn(
            argv=target.argv,
            env=self._environment(run, target),
            cwd=target.cwd,
            stdin=(target.stdin or "").encode("utf-8", "replace"),
            limits={"cpu_seconds": target.cpu_seconds, "memory_mb": target.memory_mb},
        )
        try:
            async with self._processes.started(spawn, run.output) as process:
                try:
                    end = await process.wait()
                except asyncio.CancelledError:
                    run.keep(_result(process.output))
                    with suppress(KeeperDied):
                        run.keep(_result(process.output, await process.end(run.grace)))
                    raise
                return _outcome(target, end, process.output)
        except CouldNotStart as exc:
            return Failed(error=cut_text(f"not started: {exc}", 500), retryable=exc.passing)
        except KeeperDied as exc:
            return Failed(error=str(exc))

    def _environment(self, run: Run, target: CommandTarget) -> dict[str, str]:
        job, execution = run.claim.job, run.claim.execution
        about = {
            "NOONDAY_JOB_ID": job.id,
            "NOONDAY_JOB_NAME": job.name,
            "NOONDAY_EXECUTION_ID": execution.id,
            "NOONDAY_ATTEMPT": str(execution.attempt),
            "NOONDAY_SCHEDULED_FOR": rfc3339(execution.scheduled_for),
            "TRACEPARENT": traceparent(execution),
        }
        config = json.dumps(run.config)
        if len(config) <= _LONGEST_VARIABLE:
            about["NOONDAY_CONFIG"] = config
        return {**self._config.environment, **target.env, **about}


def _result(output: HeadAndTail, end: Exit | None = None) -> Result:
    result = Result(output_tail=output.text(), bytes_received=output.received)
    if end is None:
        return result
    metadata = {"signal": signal_name(-end.code)} if end.code < 0 else {}
    return Result(
        exit_code=end.code,
        output_tail=output.text(),
        bytes_received=output.received,
        metadata=metadata,
        usage=end.usage,
    )


def _outcome(target: CommandTarget, end: Exit, output: HeadAndTail) -> Completed | Failed:
    result = _result(output, end)
    if end.code == 0:
        return Completed(result=result)
    return Failed(error=_words(target, end, result.output_tail or ""), result=result)


def _words(target: CommandTarget, end: Exit, output: str) -> str:
    lines = output.strip().splitlines()
    last = cut_text(f": {lines[-1]}", 300) if lines else ""
    if end.code > 0:
        return f"ended with exit status {end.code}{last}"
    name = signal_name(-end.code)
    used_up = target.cpu_seconds and (end.usage.cpu_time_ms or 0) >= target.cpu_seconds * 1000
    if target.cpu_seconds and (name == "SIGXCPU" or (name == "SIGKILL" and used_up)):
        return f"used more than its {target.cpu_seconds} s of CPU time and was ended by {name}"
    hint = " (out of memory?)" if name == "SIGKILL" else ""
    return f"ended by {name}{hint}{last}"


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
