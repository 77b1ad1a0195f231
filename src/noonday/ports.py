"""Contracts between the engine and its hands. A Protocol only where several implementations ship."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Protocol

from noonday.domain.breaker import BreakerState
from noonday.domain.execution import Execution, ExecutionId, SkipReason
from noonday.domain.job import Job, JobId, Lane
from noonday.domain.outcome import NOTHING, Outcome, Result


@dataclass(frozen=True, slots=True)
class Claim:
    """An execution that this instance may run while its lease lives; `execution.lease_token` proves it."""

    job: Job
    execution: Execution


async def _nobody_listens(fraction: float | None, message: str | None) -> None:
    pass


def _nobody_reads(text: str) -> None:
    pass


@dataclass(eq=False, repr=False)  # without slots: where nothing else is said, the class says it
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
    output: Callable[[str], None] = _nobody_reads  # what it writes, as it does; from any thread, never waits
    task: asyncio.Task[Any] | None = None  # that awaits the target, where the runner knows it
    partial: Result = field(default=NOTHING)
    tidy: bool = False  # it leaves nothing behind in its task, which may serve another run

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


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is put on the road: an id and the lane it goes in, nothing else."""

    lane: Lane
    execution_id: ExecutionId


@dataclass(frozen=True, slots=True)
class Pledge:
    """A parcel that is, or will be, put on the road at its moment; the row says so already."""

    due_at: datetime
    parcel: Parcel


@dataclass(frozen=True, slots=True)
class Delivery:
    """A parcel in the hands of this instance until it is acknowledged; the receipt names the message."""

    lane: Lane
    execution_id: ExecutionId
    receipt: str


class Queue(Protocol):
    """The road between instances. It carries ids; losing all of it loses nothing, for the rows are the truth.

    Every verb raises RoadDown when the road cannot be used, after a bounded time. A parcel may be delivered
    twice, late, or never: the claim in the store decides, and a sweep puts back what is missing.
    """

    @property
    def forgotten(self) -> int:
        """How often it was found to have lost all that was on it."""
        ...

    async def check(self) -> list[str]:
        """Make it ready; what is doubtful about it, in words for the log. Raises RoadDown if it is unfit."""
        ...

    async def put(self, parcels: Sequence[Parcel]) -> None:
        """All of them in one round trip."""
        ...

    async def take(self, limit: int, wait: timedelta) -> list[Delivery]:
        """Up to `limit`, high lanes first with a share for the lower; waits while all of them are empty."""
        ...

    async def ack(self, deliveries: Collection[Delivery]) -> None:
        """Done with, after the commit that made it so: the messages vanish. Unknown receipts are ignored."""
        ...

    async def hand_back(self, deliveries: Collection[Delivery]) -> None:
        """Not started here and free for another instance."""
        ...

    async def keep(self, deliveries: Collection[Delivery]) -> None:
        """Still worked on here: nobody takes them for abandoned."""
        ...

    async def abandoned(self, idle: timedelta, limit: int) -> list[Delivery]:
        """Messages whose holder has been silent for so long, now held here; the store knows whether it is
        dead. Goes on at each call where it stopped, and comes round."""
        ...

    async def mine(self) -> list[Delivery]:
        """Deliveries that an earlier process of this instance's name left unacknowledged."""
        ...

    async def missing(self, parcels: Sequence[Parcel]) -> list[Parcel]:
        """Those that are neither waiting on the road nor in anybody's hands."""
        ...

    async def tidy(self, alive: Collection[str]) -> None:
        """Drop what no living instance needs: consumers that are gone, messages behind the last open one."""
        ...

    async def depths(self) -> Mapping[Lane, int]:
        """Messages waiting or in hands, per lane."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Leader:
    holder: str
    term: int
    left: timedelta  # until the lease ends unless it is renewed, as its keeper counts


class Leadership(Protocol):
    """Who plans: a lease with a name and a term. The term is issued by the store, whoever keeps the lease."""

    ttl: timedelta
    name: str  # "redis" or "database": which of them it is
    key: str  # what the lease is called there, and the term in the store

    async def campaign(self) -> int | None:
        """The new term, or None while somebody else leads. Raises Unavailable when it cannot be known."""
        ...

    async def renew(self, term: int) -> bool:
        """Is the term still ours? The lease is renewed if so, and taken here if it is free here."""
        ...

    async def resign(self, term: int) -> None:
        """Let another one lead at once."""
        ...

    async def leader(self) -> Leader | None: ...


@dataclass(frozen=True, slots=True)
class Message:
    """Something that was published on a channel, as heard under one subscription.

    A message on a channel that several subscriptions cover is heard once under each of them.
    """

    channel: str
    data: str
    heard_as: str  # the channel itself, or the pattern that covers it


class Receiver(Protocol):
    """Ears on channels that other programs publish on. Nothing is kept for those who do not listen.

    Both `follow` and `take` raise RoadDown when the connection is lost; what was followed is forgotten then.
    """

    async def follow(self, channels: Collection[str]) -> None:
        """Hear exactly these from now on, among them patterns with * ? [ ]; a change misses no message."""
        ...

    async def take(self, limit: int, wait: timedelta) -> list[Message]:
        """Up to `limit` messages, in the order of each channel; waits while there are none."""
        ...

    async def close(self) -> None:
        """Hear nothing until told again what to follow."""
        ...


class Telemetry(Protocol):
    """What the engine tells of itself as it goes. Cheap and synchronous; it never raises."""

    def planned(self, job: Job, fires: int) -> None: ...
    def skipped(self, job_id: JobId, reason: SkipReason, count: int) -> None: ...
    def enqueued(self, lane: Lane, count: int) -> None: ...
    def dequeued(self, lane: Lane, count: int) -> None: ...
    def redelivered(self, lane: Lane, count: int) -> None: ...
    def started(self, claim: Claim, late: timedelta) -> None: ...
    def ended(self, claim: Claim, outcome: Outcome, took: float) -> None: ...  # seconds
    def progressed(self, execution: Execution, fraction: float | None, message: str | None) -> None: ...
    def lease_lost(self) -> None: ...
    def triggered(self, kind: str, matched: int) -> None: ...
    def breaker(self, domain: str, state: BreakerState, tripped: bool) -> None: ...
    def campaigned(self) -> None: ...


class Silence:
    """Telemetry of an instance that nobody measures."""

    def planned(self, job: Job, fires: int) -> None: ...
    def skipped(self, job_id: JobId, reason: SkipReason, count: int) -> None: ...
    def enqueued(self, lane: Lane, count: int) -> None: ...
    def dequeued(self, lane: Lane, count: int) -> None: ...
    def redelivered(self, lane: Lane, count: int) -> None: ...
    def started(self, claim: Claim, late: timedelta) -> None: ...
    def ended(self, claim: Claim, outcome: Outcome, took: float) -> None: ...
    def progressed(self, execution: Execution, fraction: float | None, message: str | None) -> None: ...
    def lease_lost(self) -> None: ...
    def triggered(self, kind: str, matched: int) -> None: ...
    def breaker(self, domain: str, state: BreakerState, tripped: bool) -> None: ...
    def campaigned(self) -> None: ...
