"""Makes endings durable: all that wait go into one transaction, the next batch gathers meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Final

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.execution import ExecutionId
from noonday.domain.outcome import Failed
from noonday.engine.breath import Breath
from noonday.engine.counters import Counters
from noonday.engine.loop import Actor, Wish, first_line, is_outage
from noonday.store import executions, history
from noonday.store.database import Database
from noonday.store.executions import Ending, Ends

log = structlog.get_logger(__name__)

Then = Callable[[bool], None]  # told that it is durable: True, or False when its token was dead
_OFTEN: Final = 10  # times that an ending may be left: then its job is waited for


@dataclass(slots=True, eq=False)
class _Waiting:
    ending: Ending
    attempt: int
    then: Then
    tried: bool = False  # a commit failed, so that its outcome is not known
    left: int = 0  # how often, because somebody else held its job


class Settler(Actor):
    """Group commit. An outage of the database loses no ending: they wait, and then the token decides."""

    name = "settler"
    gap = 0.02  # the first ending goes at once, those close behind share a commit: claims get through

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        counters: Counters,
        chance: Callable[[], float],
        breath: Breath,
        batch: int = 500,
        company: timedelta = timedelta(),  # so long endings wait for a claim that takes them along
    ) -> None:
        super().__init__(clock=clock)
        self.chance = chance
        self.settled: Callable[[int], None] = lambda _: None  # told how many are durable now
        self._db = db
        self._counters = counters
        self._breath = breath
        self._batch = batch
        self._company = company
        self._waiting: deque[_Waiting] = deque()
        self._committing = False
        self._lent = False  # a claim has some of them
        self._left_until = float("-inf")  # till then they are left to claims
        self._idle = asyncio.Event()
        self._idle.set()

    def __len__(self) -> int:
        return len(self._waiting)

    def lend(self) -> list[_Waiting]:
        """For a claim that takes them along: `carried` or `take_back` follows. None while others are being
        committed, or while it is not known what became of some: that is looked into here."""
        self._left_until = self.clock.monotonic() + self._company.total_seconds()
        if self._committing or self._lent or not self._waiting or self._waiting[0].tried:
            return []
        self._lent = True
        return list(islice(self._waiting, self._batch))

    def work(self, batch: Sequence[_Waiting]) -> Callable[..., Ends]:
        """What makes these durable, all that somebody else does not stand in the way of; given a connection,
        and what goes on `beside`."""
        return partial(
            executions.settle_held,
            endings=[one.ending for one in batch],
            now=self.clock.now(),
            chance=self.chance(),
            wait=any(one.left >= _OFTEN for one in batch),
        )

    def carried(self, batch: list[_Waiting], ends: Ends) -> None:
        """They are durable, except for those that were left. Another claim may come for the next ones: what
        follows these is seen to behind it."""
        self._lent, self._left_until = False, self.clock.monotonic() + self._company.total_seconds()
        batch = self._take_out(batch, ends.left)
        settled = [one.ending.execution_id in ends.settled for one in batch]
        asyncio.get_running_loop().call_soon(self._after, batch, settled)

    def take_back(self, batch: Sequence[_Waiting]) -> None:
        """The claim failed, and nobody knows what became of them."""
        self._lent, self._left_until = False, float("-inf")
        for one in batch:
            one.tried = True
        self.wake.set()

    def offer(self, ending: Ending, attempt: int, then: Then) -> None:
        """Hand over an ending; nobody waits for it, `then` is called when it is durable."""
        if not self._waiting:  # while some wait it is on its way already
            self._idle.clear()
            self.wake.set()
        self._waiting.append(_Waiting(ending, attempt, then))

    async def drained(self) -> None:
        """Wait until nothing waits."""
        await self._idle.wait()

    async def run_once(self) -> Wish:
        full = True
        while full and self._waiting:
            if self._lent or (self.clock.monotonic() < self._left_until and not self._waiting[0].tried):
                return self._company
            batch = list(islice(self._waiting, self._batch))
            full = len(batch) == self._batch
            done, left = await self._commit(batch)
            batch = self._take_out(batch, left)
            self._after(batch, [one.ending.execution_id in done for one in batch])
        # Those that ended meanwhile have company in a moment.
        return timedelta() if self._waiting else None

    def _take_out(self, batch: list[_Waiting], left: Collection[ExecutionId]) -> list[_Waiting]:
        """The batch without those that were left, which go on waiting, before all others."""
        for _ in batch:
            self._waiting.popleft()
        if not left:
            return batch
        staying = [one for one in batch if one.ending.execution_id in left]
        for one in staying:
            one.left += 1
        self._waiting.extendleft(reversed(staying))
        return [one for one in batch if one.ending.execution_id not in left]

    def _after(self, batch: Sequence[_Waiting], done: Sequence[bool]) -> None:
        self._counters.settled += sum(done)
        for one, settled in zip(batch, done, strict=True):
            if not settled:
                self._refuse(one)
            self._follow(one, settled)
            self._breath.draw()
        if not self._waiting:
            self._idle.set()
        self.settled(len(batch))

    async def _commit(self, batch: Sequence[_Waiting]) -> Ends:
        self._committing = True
        try:
            done, left = await self._write(batch)
            again = [one for one in batch if one.tried and one.ending.execution_id not in done | left]
            done |= await self._db.read(partial(_settled_before, again)) if again else set()
        except Exception as exc:
            for one in batch:
                one.tried = True
            if is_outage(exc):
                raise
            return Ends({one.ending.execution_id for one in batch if await self._alone(one, exc)})
        finally:
            self._committing = False
        return Ends(done, left)

    async def _write(self, batch: Sequence[_Waiting]) -> Ends:
        return await self._db.write(self.work(batch), serially=True)

    async def _alone(self, one: _Waiting, why: Exception) -> bool:
        """One ending that the database refuses must not keep the others from theirs."""
        error = f"the outcome could not be stored: {first_line(why)}"
        plain = replace(one.ending, outcome=Failed(error=error, retryable=False))
        for ending in (one.ending, plain):
            try:
                return bool((await self._write([replace(one, ending=ending, left=_OFTEN)])).settled)
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

    def _refuse(self, one: _Waiting) -> None:
        self._counters.refused += 1
        log.warning(
            "an ending came after its lease was gone and changes nothing",
            action="settle.refused",
            outcome=type(one.ending.outcome).__name__.lower(),
            execution_id=one.ending.execution_id,
        )

    def _follow(self, one: _Waiting, settled: bool) -> None:
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
