"""Runs one attempt: a target under a time-out, with somebody who may stop it."""

from __future__ import annotations

import asyncio
import traceback
from datetime import timedelta
from typing import Any

import structlog

from noonday.domain.outcome import Accepted, Completed, Failed, Outcome
from noonday.engine.breakers import Breakers
from noonday.engine.held import Held, Stop, ids, outcome_of
from noonday.engine.leases import Leases
from noonday.engine.loop import first_line
from noonday.engine.outputs import Outputs
from noonday.engine.reporter import Reporter
from noonday.ports import Run, TargetRunner
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
        self._grace = grace

    async def run(self, held: Held) -> Outcome | None:
        """The outcome to settle, or None when there is nothing to report because the lease is gone."""
        try:
            outcome = await self._attempt(held)
            self._breakers.after(held.claim, outcome)
            if self._reporter.knows(held):
                await self._reporter.last_words()
        finally:
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

    async def _attempt(self, held: Held) -> Outcome | None:
        if held.stopped is not None:
            return outcome_of(held)
        deferred = await self._breakers.before(held.claim) if self._breakers.alert else None
        now = self._leases.look_at(held)
        if held.stopped is not None:  # while it was claimed, or while the breaker was asked
            return outcome_of(held)
        if deferred is not None:
            return deferred
        task = asyncio.current_task()
        assert task is not None
        run = held.run = Run(
            claim=held.claim,
            task=task,
            timeout=held.claim.job.timeout,
            grace=self._grace,
            progress=self._reporter.reporting(held),
            output=self._outputs.open(held),
        )
        return await self._under_way(held, task, run, now)

    async def _under_way(self, held: Held, task: asyncio.Task[Any], run: Run, now: float) -> Outcome | None:
        """Whoever cuts it cancels this task, once: that is taken back here, and no other cancelling."""
        cancelled = held.begin_work(task)
        try:
            self._leases.start(held, now)
            outcome = await self._target.run(run)
        except asyncio.CancelledError:
            if not held.cut or task.uncancel() > cancelled:
                raise
            return self._stopped(held)
        except Exception as exc:
            if held.cut:
                task.uncancel()
                return self._stopped(held)
            # Targets never raise; if one does, its own attempt fails and nothing else.
            log.exception("a target raised", action="target.raised", **ids(held.claim))
            return Failed(error=first_line(exc), stack=traceback.format_exc())
        finally:
            held.end_work()
        if held.cut:
            task.uncancel()
            if not isinstance(outcome, Completed | Accepted):
                return self._stopped(held)  # it failed because it was stopped
        return outcome

    def _stopped(self, held: Held) -> Outcome | None:
        if held.stopped is None:  # by its timer, not by a person or an actor
            self._leases.ran_out(held)
        return outcome_of(held)
