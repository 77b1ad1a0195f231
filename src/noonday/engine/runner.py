"""Runs one attempt: a target under a time-out, with somebody who may stop it."""

from __future__ import annotations

import asyncio
import traceback
from datetime import timedelta
from typing import Any

import structlog

from noonday.domain.outcome import Accepted, Completed, Failed, Outcome
from noonday.engine.breakers import Breakers
from noonday.engine.held import Ears, Held, Stop, ids, outcome_of
from noonday.engine.leases import Leases
from noonday.engine.loop import first_line
from noonday.engine.outputs import Outputs
from noonday.engine.reporter import Reporter
from noonday.ports import TargetRunner
from noonday.telemetry.masking import masked

log = structlog.get_logger(__name__)


class Runner:
    """Turns a claim into an Outcome. Whoever stops the attempt says why; the target only lets go."""

    def __init__(
        self,
        *,
        target: TargetRunner,
        breakers: Breakers,
        leases: Leases,
        reporter: Reporter,
        outputs: Outputs,
        grace: timedelta,
    ) -> None:
        self._target = target
        self._breakers = breakers
        self._leases = leases
        self._reporter = reporter
        self._outputs = outputs
        self._ears = Ears(reporter.report, outputs.write)
        self._grace = grace

    async def run(self, held: Held, task: asyncio.Task[Any]) -> Outcome | None:
        """The outcome to settle, or None when there is nothing to report because the lease is gone.

        `task` is the one that this runs in."""
        try:
            outcome = await self._attempt(held, task)
            self._breakers.after(held.claim, outcome)
            if held.reported:
                await self._reporter.last_words(held)
        finally:
            if held.reported:
                self._reporter.forget(held)
            self._outputs.close(held)
        if held.ended:  # abandoned: it was settled without us
            return None
        held.ended = True
        if outcome is None or held.stopped is Stop.LOST:
            return None
        if self._outputs.waits(held):
            await self._outputs.last_words(held)
        held.accepted = isinstance(outcome, Accepted)
        return masked(outcome, held.claim.job, held.claim.execution)

    async def _attempt(self, held: Held, task: asyncio.Task[Any]) -> Outcome | None:
        """Whoever cuts it cancels this task, once: that is taken back here, and no other cancelling."""
        asked = self._breakers.alert and held.stopped is None
        deferred = await self._breakers.before(held.claim) if asked else None
        now = self._leases.look_at(held)
        if held.stopped is not None:  # while it was claimed, or while the breaker was asked
            return outcome_of(held)
        if deferred is not None:
            return deferred
        cancelled = held.begin_work(task)
        try:
            self._leases.start(held, now)
            held.ears, held.grace, held.silent = self._ears, self._grace, False
            outcome = await self._target.run(held)
        except asyncio.CancelledError:
            if not held.cut or task.uncancel() > cancelled:
                raise
            return self._stopped(held)
        except Exception as exc:
            outcome = _raised(held, exc)
        finally:
            held.end_work()
        return self._uncut(held, task, outcome) if held.cut else outcome

    def _uncut(self, held: Held, task: asyncio.Task[Any], outcome: Outcome) -> Outcome | None:
        """It was told to stop and returned all the same: done, or failed because it was told so."""
        task.uncancel()
        return outcome if isinstance(outcome, Completed | Accepted) else self._stopped(held)

    def _stopped(self, held: Held) -> Outcome | None:
        if held.stopped is None:  # by its timer, not by a person or an actor
            self._leases.ran_out(held)
        return outcome_of(held)


def _raised(held: Held, exc: Exception) -> Failed:
    """Targets never raise; if one does, its own attempt fails and nothing else."""
    if not held.cut:
        log.exception("a target raised", action="target.raised", **ids(held.claim))
    return Failed(error=first_line(exc), stack=traceback.format_exc())
