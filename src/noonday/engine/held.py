"""A claim in the hands of this instance: what may still be trusted, and why it was stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from noonday.domain.execution import ExecutionId
from noonday.domain.outcome import NOTHING, Cancelled, Outcome, Released, TimedOut
from noonday.ports import Claim, Delivery, Run
from noonday.store.executions import Ending

NEVER = float("inf")


class Stop(StrEnum):
    """Why an attempt is stopped from outside."""

    TIME_OUT = "time_out"
    CANCEL = "cancel"
    LOST = "lost"
    SHUTDOWN = "shutdown"
    NO_SLOT = "no_slot"  # claimed ahead, and the slots did not become free as expected


class Held:
    """From the claim until its end is durable. Moments are of the monotonic clock."""

    # As it stands with most claims: to set all of this for each of them takes longer than some of them run.
    began = NEVER  # when the attempt did
    deadline = NEVER  # the attempt's time-out, known once it runs
    started_at: datetime | None = None  # of the wall clock, for the record
    stopped: Stop | None = None
    stopped_at = NEVER
    ended = False  # its outcome is known; from here on only the token decides
    accepted = False  # it goes on elsewhere
    run: Run | None = None
    at_work = False  # its target has it
    cut = False  # its target was told to let go
    reported = False  # progress
    silent = True  # what it writes is not heard: it has not begun, or is over
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[Any] | None = None
    leave: Callable[[Held], None] | None = None  # gives its slot free

    def __init__(
        self, claim: Claim, trusted_until: float, waiting_since: float, delivery: Delivery | None = None
    ) -> None:
        self.claim = claim
        self.id: ExecutionId = claim.execution.id
        self.trusted_until = trusted_until  # beyond it the lease may be somebody else's
        self.waiting_since = waiting_since
        self.delivery = delivery  # the message that brought it, where it came by the streams

    @property
    def token(self) -> str:
        token = self.claim.execution.lease_token
        assert token is not None, "a claimed execution has a token"
        return token

    @property
    def renewable(self) -> bool:
        """Not what is lost, nor what now lives by the heartbeats of its target."""
        return self.stopped is not Stop.LOST and not self.accepted

    def ending(self, outcome: Outcome, ended_at: datetime) -> Ending:
        return Ending(
            execution_id=self.id,
            token=self.token,
            outcome=outcome,
            started_at=self.started_at,
            ended_at=ended_at,
            claim=self.claim,
        )

    def stop(self, why: Stop, now: float) -> None:
        """The first reason counts, except that a lost lease overrules all: nothing may be reported then."""
        if self.ended:
            return
        if self.stopped is None:
            self.stopped_at = now
        if self.stopped is None or why is Stop.LOST:
            self.stopped = why
        self._cut()

    def begin_work(self, task: asyncio.Task[Any]) -> int:
        """From here on the attempt can be cut; returns how often its task was cancelled for other reasons."""
        self.task, self.at_work = task, True
        return task.cancelling()

    def end_work(self) -> None:
        self.at_work = False
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def set_timer(self, now: float) -> None:
        """Cut the attempt exactly at its time-out or at the end of the trust, however busy the actors are."""
        if self.at_work and not self.cut:
            if self.timer is not None:
                self.timer.cancel()
            left = min(self.deadline, self.trusted_until) - now
            self.timer = asyncio.get_running_loop().call_later(left, self._cut)

    def _cut(self) -> None:
        if self.at_work and not self.cut:
            self.cut = True
            assert self.task is not None, "somebody works on it"
            self.task.cancel()


def outcome_of(held: Held) -> Outcome | None:
    """How a stopped attempt ended; None = its lease is gone and there is nothing to report."""
    partial = NOTHING if held.run is None else held.run.partial
    match held.stopped:
        case Stop.TIME_OUT:
            return TimedOut(after=held.claim.job.timeout, result=partial)
        case Stop.CANCEL:
            return Cancelled(result=partial)
        case Stop.SHUTDOWN:
            return Released()
        case Stop.NO_SLOT:
            return Released(detail="no slot was free here")
        case Stop.LOST | None:
            return None
        case _:
            assert_never(held.stopped)


def ids(claim: Claim) -> dict[str, str]:
    """What every log line about a claim carries."""
    return {"job": claim.job.name, "job_id": claim.job.id, "execution_id": claim.execution.id}
