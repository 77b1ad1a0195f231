"""Who waits for the end of an execution: one look at the store serves all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextvars import Context

import structlog

from noonday.domain.execution import Execution, ExecutionId
from noonday.store import executions
from noonday.store.database import Database

__all__ = ["Ends"]

log = structlog.get_logger(__name__)

_MOST = 1000  # who may wait here at once
_FIRST_BEAT = 0.02  # seconds
_LONGEST_BEAT = 0.5
_GROWTH = 1.5  # whoever waits for a short run hears of it soon, and a long one costs two looks a second

Heard = asyncio.Future[Execution | None]


class Ends:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._waiting: dict[ExecutionId, set[Heard]] = {}
        self._stir = asyncio.Event()  # somebody came, or the last one left
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    async def wait(self, execution_id: ExecutionId, seconds: float) -> Execution | None:
        """The execution as it ended; None if it has not within that time, or too many wait here."""
        if self._closed or len(self._waiting) >= _MOST:
            return None
        heard: Heard = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(execution_id, set()).add(heard)
        self._stir.set()
        if self._looking is None or self._looking.done():
            # In a context of its own: it outlives the request that happened to start it.
            self._looking = asyncio.create_task(
                self._look_until_nobody_waits(), name="ends", context=Context()
            )
        try:
            async with asyncio.timeout(seconds):
                return await heard
        except TimeoutError:
            return None
        finally:
            self._leave(execution_id, heard)

    def close(self) -> None:
        """Nobody waits any longer: the instance is about to end."""
        self._closed = True
        for waiting in self._waiting.values():
            _tell(waiting, None)

    def _leave(self, execution_id: ExecutionId, heard: Heard) -> None:
        waiting = self._waiting[execution_id]
        waiting.discard(heard)
        if not waiting:
            del self._waiting[execution_id]
        if not self._waiting:
            self._stir.set()

    async def _look_until_nobody_waits(self) -> None:
        beat = _FIRST_BEAT
        while self._waiting:
            self._stir.clear()  # whoever comes during the look is looked for at once afterwards
            for ended in await self._ended(list(self._waiting)):
                _tell(self._waiting.get(ended.id, ()), ended)
            beat = _FIRST_BEAT if await self._stirred(beat) else min(beat * _GROWTH, _LONGEST_BEAT)

    async def _ended(self, ids: Collection[ExecutionId]) -> list[Execution]:
        try:
            return await self._db.read(lambda conn: executions.ended(conn, ids))
        except Exception as exc:  # the run was started all the same: who asked is told that, and no more
            log.warning("cannot see which executions have ended", action="ends.look", error=str(exc))
            return []

    async def _stirred(self, beat: float) -> bool:
        """Sleep for a beat, unless somebody comes or the last one leaves."""
        try:
            async with asyncio.timeout(beat):
                await self._stir.wait()
        except TimeoutError:
            return False
        return True


def _tell(waiting: Collection[Heard], ended: Execution | None) -> None:
    for heard in waiting:
        if not heard.done():
            heard.set_result(ended)
