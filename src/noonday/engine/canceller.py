"""Passes a cancel on to targets that answered 202 and run elsewhere: they left an address for it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial

import structlog

from noonday.clock import Clock
from noonday.domain.execution import Execution, ExecutionId
from noonday.engine import looks
from noonday.engine.loop import Actor, Wish
from noonday.store.database import Database
from noonday.store.notices import CANCEL

log = structlog.get_logger(__name__)

Cancel = Callable[[Execution], Awaitable[bool]]

_AGAIN = timedelta(seconds=5)
_SAFETY = timedelta(seconds=30)  # a run may be given away after its cancel was asked for
_PATIENCE = 5.0  # seconds for one call
_TRIES = 3


class Canceller(Actor):
    """Each instance tells the runs that it started itself.

    A target that does not hear falls silent or reports in the end; the request stands and is obeyed then.
    """

    name = "canceller"
    gap = 0.1

    def __init__(self, *, db: Database, clock: Clock, instance_id: str, cancel: Cancel) -> None:
        super().__init__(clock=clock, wake=db.subscribe(CANCEL))
        self._db = db
        self._instance_id = instance_id
        self._cancel = cancel
        self._tries: dict[ExecutionId, int] = {}

    async def run_once(self) -> Wish:
        found = await self._db.read(partial(looks.remote_to_cancel, instance_id=self._instance_id))
        self._tries = {one.id: self._tries.get(one.id, 0) for one in found}
        for one in found:
            if self._tries[one.id] < _TRIES:
                self._tries[one.id] = _TRIES if await self._tell(one) else self._tries[one.id] + 1
        return _AGAIN if any(tries < _TRIES for tries in self._tries.values()) else _SAFETY

    async def _tell(self, execution: Execution) -> bool:
        try:
            async with asyncio.timeout(_PATIENCE):
                return await self._cancel(execution)
        except Exception as exc:  # one deaf target must not keep the others from hearing
            log.warning(
                "a cancel did not arrive", action="cancel", execution_id=execution.id, error=repr(exc)
            )
            return False
