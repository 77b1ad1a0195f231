"""Tells what happens to executions: gathered without waiting, written together a few times a second."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.execution import Execution, SkipReason
from noonday.domain.job import JobId
from noonday.domain.outcome import Cancelled, Completed, Failed, Outcome, Parked, Released, TimedOut
from noonday.domain.settling import Settlement
from noonday.domain.topics import MANY
from noonday.engine.loop import Actor, Wish, first_line
from noonday.ports import Claim, Telemetry
from noonday.store import events
from noonday.store.database import Database
from noonday.store.events import News

__all__ = ["Publisher", "recovered"]

log = structlog.get_logger(__name__)

_ERROR_CHARS: Final = 500
_LAST_WORDS_WITHIN: Final = 2.0  # seconds
_PRUNE_AFTER: Final = 1_000  # rows written here
_WORDS: Final[Mapping[type, str]] = {
    Completed: "completed",
    Failed: "failed",
    TimedOut: "timed_out",
    Cancelled: "cancelled",
    Released: "released",
    Parked: "parked",
}


class Publisher(Actor):
    """Telemetry before another telemetry, to which it passes everything on.

    Each verb costs an append. What comes faster than `most` in a flush is counted in one row, so that a
    scheduler at full speed writes no more of these than its database hardly notices.
    """

    name = "events"
    gap = 0.25

    def __init__(
        self, *, db: Database, clock: Clock, telemetry: Telemetry, keep: int, most: int = 250
    ) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._next = telemetry
        self._count_start, self._count_end = telemetry.started, telemetry.ended
        self._keep = keep
        self._most = most
        self._home = asyncio.get_running_loop()
        self._waiting: deque[Callable[[], News]] = deque()
        self._more: Counter[str] = Counter()
        self._unpruned = 0
        # What makes no event goes straight on.
        self.planned = telemetry.planned
        self.enqueued, self.dequeued = telemetry.enqueued, telemetry.dequeued
        self.redelivered, self.lease_lost = telemetry.redelivered, telemetry.lease_lost
        self.triggered, self.campaigned = telemetry.triggered, telemetry.campaigned
        self.breaker = telemetry.breaker

    def started(self, claim: Claim, late: timedelta) -> None:
        self._count_start(claim, late)
        if self._has_room("started"):
            self._waiting.append(partial(_started, self.clock.now(), claim, late))

    def ended(self, claim: Claim, outcome: Outcome, took: float) -> None:
        self._count_end(claim, outcome, took)
        word = _WORDS.get(type(outcome))
        if word is not None and self._has_room(word):
            self._waiting.append(partial(_ended, self.clock.now(), claim, outcome, took))

    def progressed(self, execution: Execution, fraction: float | None, message: str | None) -> None:
        self._next.progressed(execution, fraction, message)
        if self._has_room("progressed"):
            self._waiting.append(partial(_progressed, self.clock.now(), execution, fraction, message))

    def skipped(self, job_id: JobId, reason: SkipReason, count: int) -> None:
        """Told by the threads of the store."""
        self._next.skipped(job_id, reason, count)
        with suppress(RuntimeError):  # its loop is closed: nobody tells any more
            self._home.call_soon_threadsafe(self._skip, job_id, reason, count)

    def _skip(self, job_id: JobId, reason: SkipReason, count: int) -> None:
        if self._has_room("skipped", count):
            self._waiting.append(partial(_skipped, self.clock.now(), job_id, reason, count))

    def _has_room(self, word: str, count: int = 1) -> bool:
        """If not it is only counted, and who waits there already has woken the writer."""
        if len(self._waiting) < self._most:
            self.wake.set()
            return True
        self._more[word] += count
        return False

    async def run(self) -> None:
        try:
            await super().run()
        finally:
            await self._last_words()

    async def _last_words(self) -> None:
        """What ended while the instance was stopping."""
        try:
            async with asyncio.timeout(_LAST_WORDS_WITHIN):
                await self.run_once()
        except Exception as exc:
            log.warning("the last events were lost", action="events.lost", error=first_line(exc))

    async def run_once(self) -> Wish:
        if not self._waiting and not self._more:
            return None
        batch, self._waiting = self._waiting, deque()
        more, self._more = self._more, Counter()
        try:
            # Cancelled here, it is written all the same: what has begun in the store goes on by itself.
            await self._db.write(partial(self._write, batch, more))
        except Exception:
            self._waiting.extendleft(reversed(batch))
            self._more += more
            raise
        self._unpruned += len(batch) + 1
        if self._unpruned >= min(_PRUNE_AFTER, self._keep):
            await self._db.write(partial(events.prune, keep=self._keep))
            self._unpruned = 0
        return None

    def _write(self, batch: Sequence[Callable[[], News]], more: Mapping[str, int], conn: Connection) -> None:
        news = [make() for make in batch]
        if more:
            news.append(News(at=self.clock.now(), kind=MANY, payload={"counts": dict(more)}))
        events.append(conn, news)


def recovered(settlement: Settlement, now: datetime) -> News:
    """An execution whose worker died: over, or to be run again."""
    execution = settlement.execution
    told = {"attempt": execution.attempt, "status": execution.state.value, "outcome": "lost"}
    return News(
        at=now,
        kind="execution.ended" if settlement.final else "execution.waiting",
        job_id=execution.job_id,
        execution_id=execution.id,
        payload={**told, "error": _cut(execution.error), "detail": execution.detail},
    )


def _started(at: datetime, claim: Claim, late: timedelta) -> News:
    execution = claim.execution
    return _of(
        at,
        "execution.started",
        execution,
        attempt=execution.attempt,
        cause=execution.cause.value,
        scheduled_for=execution.scheduled_for.isoformat(),
        lateness_ms=round(late.total_seconds() * 1000),
        instance=execution.instance_id,
    )


def _ended(at: datetime, claim: Claim, outcome: Outcome, took: float) -> News:
    status, kind = _became(claim, outcome)
    return _of(
        at,
        kind,
        claim.execution,
        attempt=claim.execution.attempt,
        status=status,
        outcome=_WORDS[type(outcome)],
        duration_ms=round(took * 1000),
        error=_cut(_error(outcome)),
    )


def _became(claim: Claim, outcome: Outcome) -> tuple[str, str]:
    """What the execution is now, and what that is called."""
    match outcome:
        case Completed():
            return "completed", "execution.ended"
        case Cancelled():
            return "cancelled", "execution.ended"
        case Released():
            return "queued", "execution.waiting"
        case Parked():
            return "pending", "execution.waiting"
        case _:
            hopeless = isinstance(outcome, Failed) and not outcome.retryable
            if hopeless or claim.execution.failures >= claim.job.retry.max_retries:
                return "failed", "execution.ended"
            return "pending", "execution.retrying"


def _error(outcome: Outcome) -> str | None:
    match outcome:
        case Failed():
            return outcome.error
        case TimedOut():
            return f"took longer than {outcome.after.total_seconds():g} s"
        case Released() | Parked():
            return outcome.detail
        case _:
            return None


def _progressed(at: datetime, execution: Execution, fraction: float | None, message: str | None) -> News:
    return _of(at, "execution.progressed", execution, progress=fraction, message=_cut(message))


def _skipped(at: datetime, job_id: JobId, reason: SkipReason, count: int) -> News:
    told = {"reason": reason.value, "count": count}
    return News(at=at, kind="execution.skipped", job_id=job_id, payload=told)


def _of(at: datetime, kind: str, execution: Execution, **told: Any) -> News:
    return News(at=at, kind=kind, job_id=execution.job_id, execution_id=execution.id, payload=told)


def _cut(text: str | None) -> str | None:
    return text if text is None or len(text) <= _ERROR_CHARS else text[: _ERROR_CHARS - 3] + "..."
