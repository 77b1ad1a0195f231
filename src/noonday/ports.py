"""Contracts between the engine and its hands. A Protocol only where several implementations ship."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from noonday.domain.execution import Execution
from noonday.domain.job import Job
from noonday.domain.outcome import NOTHING, Outcome, Result


@dataclass(frozen=True, slots=True)
class Claim:
    """An execution that this instance may run while its lease lives; `execution.lease_token` proves it."""

    job: Job
    execution: Execution


async def _nobody_listens(fraction: float | None, message: str | None) -> None:
    pass


@dataclass(slots=True, kw_only=True)
class Run:
    """One attempt in progress: what the runner hands to a target.

    The runner stops an attempt (time-out, cancel, lost lease, shutdown) by cancelling the task that awaits
    `TargetRunner.run`. The target then ends what it started, within `grace`, calls `keep` with what is known
    so far, and lets the CancelledError go on: the runner alone knows why, and makes the Outcome.
    """

    claim: Claim
    timeout: timedelta
    grace: timedelta = timedelta(seconds=5)
    progress: Callable[[float | None, str | None], Awaitable[None]] = _nobody_listens
    partial: Result = field(default=NOTHING)

    def keep(self, result: Result) -> None:
        self.partial = result

    @property
    def config(self) -> Any:
        """The trigger's own config where it gave one, else the job's."""
        given = self.claim.execution.config
        return self.claim.job.config if given is None else given


class TargetRunner(Protocol):
    """Runs one kind of target.

    Never raises for a run that went wrong: that is a Failed outcome, with `retryable` decided here. Raises
    only CancelledError. Bounds what it reads and keeps. Leaves nothing behind when cancelled: no process, no
    socket.
    """

    async def run(self, run: Run) -> Outcome: ...
