"""A claim in the hands of this instance: what may still be trusted, and why it was stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, assert_never

from noonday.domain.execution import ExecutionId
from noonday.domain.outcome import Cancelled, Outcome, Released, TimedOut
from noonday.ports import Claim, Delivery, Run
from noonday.store.executions import Ending

NEVER = float("inf")


@dataclass(frozen=True, slots=True)
class Ears:
    """Who hears what an attempt tells of itself as it goes."""

    report: Callable[[Held, float | None, str | None], Awaitable[None]]
    write: Callable[[Held, str], None]


class Stop(StrEnum):
    """Why an attempt is stopped from outside."""

    TIME_OUT = "time_out"
    CANCEL = "cancel"
    LOST = "lost"
    SHUTDOWN = "shutdown"
    NO_SLOT = "no_slot"  # claimed ahead, and the slots did not become free as expected


class Held(Run):
    """From the claim until its end is durable; its target sees the run in it. Moments are of the monotonic
    clock."""

    # As it stands with most claims: to set all of this for each of them takes longer than some of them run.
    began = NEVER  # when the attempt did
    deadline = NEVER  # the attempt's time-out, known once it runs
    started_at: datetime | None = None  # of the wall clock, for the record
    stopped: Stop | None = None
    stopped_at = NEVER
    ended = False  # its outcome is known; from here on only the token decides
    accepted = False  # it goes on elsewhere
    cut = False  # its target was told to let go
    reported = False  # progress
    wrote = False  # or tried to
    silent = True  # what it writes is not heard: it has not begun, or is over
    timer: asyncio.TimerHandle | None = None
    ears: Ears | None = None  # once it has begun

    def __init__(
        self, claim: Claim, trusted_until: float, waiting_since: float, delivery: Delivery | None = None
    ) -> None:
        self.claim = claim
        self.id: ExecutionId = claim.execution.id
        self.trusted_until = trusted_until  # beyond it the lease may be somebody else's
        self.waiting_since = waiting_since
        self.delivery = delivery  # the message that brought it, where it came by the streams

    async def progress(self, fraction: float | None, message: str | None) -> None:
        if self.ears is not None:
            await self.ears.report(self, fraction, message)

    def output(self, text: str) -> None:
        if self.ears is not None:
            self.ears.write(self, text)

    def ids(self) -> dict[str, str]:
        return ids(self.claim)

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
        self.task = task
        return task.cancelling()

    def end_work(self) -> None:
        self.task = None
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None

    def set_timer(self, now: float) -> None:
        """Cut the attempt exactly at its time-out or at the end of the trust, however busy the actors are."""
        if self.task is not None and not self.cut:
            if self.timer is not None:
                self.timer.cancel()
            left = min(self.deadline, self.trusted_until) - now
            self.timer = asyncio.get_running_loop().call_later(left, self._cut)

    def _cut(self) -> None:
        if self.task is not None and not self.cut:
            self.cut = True
            self.task.cancel()


def outcome_of(held: Held) -> Outcome | None:
    """How a stopped attempt ended; None = its lease is gone and there is nothing to report."""
    match held.stopped:
        case Stop.TIME_OUT:
            return TimedOut(after=held.claim.job.timeout, result=held.partial)
        case Stop.CANCEL:
            return Cancelled(result=held.partial)
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
