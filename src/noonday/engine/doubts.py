"""Claims whose commit was never answered: what they took nobody runs, so it is given back, not waited for."""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.outcome import Released
from noonday.engine import looks
from noonday.store import executions
from noonday.store.database import CommitUnknown, Database
from noonday.store.executions import ClaimOrder

log = structlog.get_logger(__name__)

T = TypeVar("T")
_WHY = Released(detail="the answer to its claim was lost")


class Doubts:
    """Shared by the claimers of both roads: each resolves what is in doubt before it claims more.

    The marks of the tokens tell what a claim took from what another one takes at the same time.
    """

    def __init__(self, *, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._marks: set[str] = set()

    async def claim(self, order: ClaimOrder, work: Callable[[Connection], T], *, serially: bool = False) -> T:
        try:
            return await self._db.write(work, serially=serially)
        except CommitUnknown:
            self._marks.add(order.mark)
            raise

    async def resolve(self) -> None:
        if self._marks:
            marks = frozenset(self._marks)
            found = await self._db.write(partial(self._give_back, marks))
            self._marks -= marks
            if found:
                log.warning("claims without an answer are given back", action="claim.unknown", count=found)

    def _give_back(self, marks: Collection[str], conn: Connection) -> int:
        endings = [ending for mark in marks for ending in looks.marked(conn, mark, _WHY)]
        return len(executions.settle(conn, endings, self._clock.now()))
