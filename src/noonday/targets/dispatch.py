"""The hands of an instance: gives each run to the runner of its kind and answers for what they return."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import assert_never

from noonday.domain.execution import Execution
from noonday.domain.job import Job
from noonday.domain.outcome import Outcome
from noonday.domain.target import CommandTarget, FetchTarget, HttpTarget, PythonTarget, ServiceTarget
from noonday.ports import Run
from noonday.targets.calls import Caller
from noonday.targets.command import CommandRunner
from noonday.targets.config import TargetsConfig
from noonday.targets.fetch import FetchRunner
from noonday.targets.http import HttpRunner
from noonday.targets.network import domain_of
from noonday.targets.processes import Processes
from noonday.targets.python import PythonRunner
from noonday.targets.results import raised
from noonday.targets.service import ServiceRunner


class Targets:
    """Runs any target; the TargetRunner of an instance."""

    def __init__(self, config: TargetsConfig, caller: Caller | None = None) -> None:
        self._caller = caller or Caller(config)
        self._processes = Processes()
        self._http = HttpRunner(config, self._caller)
        self._service = ServiceRunner(config, self._caller)
        self._fetch = FetchRunner(config, self._caller)
        self._python = PythonRunner(config, self._processes)
        self._command = CommandRunner(config, self._processes)

    async def run(self, run: Run) -> Outcome:
        try:
            return await self._dispatch(run)
        except Exception as exc:  # a fault of ours is this run's failure, with its stack, and nobody else's
            return raised(exc)

    def _dispatch(self, run: Run) -> Awaitable[Outcome]:
        target = run.claim.job.target
        match target:
            case PythonTarget():
                return self._python.run(run, target)
            case HttpTarget():
                return self._http.run(run, target)
            case ServiceTarget():
                return self._service.run(run, target)
            case FetchTarget():
                return self._fetch.run(run, target)
            case CommandTarget():
                return self._command.run(run, target)
            case _ as never:
                assert_never(never)

    def knows(self, task: str) -> bool:
        """Can this instance run the Python task of this name or path?"""
        return self._python.knows(task)

    def domain_of(self, job: Job) -> str | None:
        """The host that the job calls: whose circuit breaker stands before it. None if it calls nobody."""
        match job.target:
            case HttpTarget() | FetchTarget():
                return domain_of(job.target.url)
            case ServiceTarget():
                return self._service.domain_of(job.target)
            case PythonTarget() | CommandTarget():
                return None
            case _ as never:
                assert_never(never)

    async def cancel_remote(self, execution: Execution) -> bool:
        """Tell a target that answered 202 to stop; False if it gave no cancel URL or did not hear."""
        return await self._http.cancel(execution)

    async def close(self) -> None:
        await self._caller.close()
        await self._processes.close()
