"""Makes endings durable: all that wait go into one transaction, the next batch gathers meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import islice

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.execution import ExecutionId
from noonday.domain.outcome import Failed
from noonday.engine.counters import Counters
from noonday.engine.loop import Actor, Wish, first_line, is_outage
from noonday.store import executions, history
from noonday.store.database import Database
from noonday.store.executions import Ending

log = structlog.get_logger(__name__)

Then = Callable[[bool], None]  # told that it is durable: True, or False when its token was dead


@dataclass(slots=True, eq=False)
class _Waiting:
    ending: Ending
    attempt: int
    then: Then
    tried: bool = False  # a commit failed, so that its outcome is not known


class Settler(Actor):
    """Group commit. An outage of the database loses no ending: they wait, and then the token decides."""

    name = "settler"
    gap = 0.02  # the first ending goes at once, those close behind share a commit: claims get through

    def __init__(
        self, *, db: Database, clock: Clock, counters: Counters, chance: Callable[[], float], batch: int = 500
    ) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._counters = counters
        self._chance = chance
        self._batch = batch
        self._waiting: deque[_Waiting] = deque()
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def offer(self, ending: Ending, attempt: int, then: Then) -> None:
        """Hand over an ending; nobody waits for it, `then` is called when it is durable."""
        self._waiting.append(_Waiting(ending, attempt, then))
        self._idle.clear()
        self.wake.set()

    async def drained(self) -> None:
        """Wait until nothing waits."""
        await self._idle.wait()

    async def run_once(self) -> Wish:
        full = True
        while full and self._waiting:
            batch = list(islice(self._waiting, self._batch))
            done = await self._commit(batch)
            self._counters.settled += sum(done)
            for one, settled in zip(batch, done, strict=True):
                self._waiting.popleft()
                self._finish(one, settled)
            full = len(batch) == self._batch
        if self._waiting:  # those that ended meanwhile have company in a moment
            return timedelta()
        self._idle.set()
        return None

    async def _commit(self, batch: Sequence[_Waiting]) -> list[bool]:
        try:
            done = await self._write([one.ending for one in batch])
            again = [one for one in batch if one.tried and one.ending.execution_id not in done]
            done |= await self._db.read(partial(_settled_before, again)) if again else set()
        except Exception as exc:
            for one in batch:
                one.tried = True
            if is_outage(exc):
                raise
            return [await self._alone(one, exc) for one in batch]
        return [one.ending.execution_id in done for one in batch]

    async def _write(self, endings: Sequence[Ending]) -> set[ExecutionId]:
        work = partial(executions.settle_held, endings=endings, now=self.clock.now(), chance=self._chance())
        return await self._db.write(work, serially=True)

    async def _alone(self, one: _Waiting, why: Exception) -> bool:
        """One ending that the database refuses must not keep the others from theirs."""
        error = f"the outcome could not be stored: {first_line(why)}"
        plain = replace(one.ending, outcome=Failed(error=error, retryable=False))
        for ending in (one.ending, plain):
            try:
                return bool(await self._write([ending]))
            except Exception as exc:
                if is_outage(exc):
                    raise
                error = first_line(exc)
        log.error(
            "an ending is given up",
            action="settle.given_up",
            error=error,
            execution_id=one.ending.execution_id,
        )
        return False

    def _finish(self, one: _Waiting, settled: bool) -> None:
        if not settled:
            self._counters.refused += 1
            log.warning(
                "an ending came after its lease was gone and changes nothing",
                action="settle.refused",
                outcome=type(one.ending.outcome).__name__.lower(),
                execution_id=one.ending.execution_id,
            )
        try:
            one.then(settled)
        except Exception:
            log.exception(
                "what follows an ending went wrong",
                action="settle.then",
                execution_id=one.ending.execution_id,
            )


def _settled_before(batch: Sequence[_Waiting], conn: Connection) -> set[ExecutionId]:
    """Those whose first try was committed after all, though its answer never came: their attempt is there."""
    return {
        one.ending.execution_id
        for one in batch
        if any(
            attempt.number == one.attempt and attempt.outcome != "lost"
            for attempt in history.attempts(conn, one.ending.execution_id)
        )
    }
