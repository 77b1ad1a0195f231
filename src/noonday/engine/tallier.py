"""Once a minute: adds what has settled to the tallies, so that nobody who looks counts the past again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.engine.fence import Fence, no_fence
from noonday.engine.loop import Actor, Wish
from noonday.store import tallying
from noonday.store.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class TallierConfig:
    every: timedelta = timedelta(minutes=1)
    batch: int = 5000
    pause: timedelta = timedelta(milliseconds=50)  # between batches: the past is long, and others write too


class Tallier(Actor):
    """After an upgrade it goes through the whole past, batch by batch; then there is little to do."""

    name = "tallier"
    head_start = 2.0

    def __init__(
        self, *, db: Database, clock: Clock, config: TallierConfig | None = None, fence: Fence = no_fence
    ) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._config = config or TallierConfig()
        self._fence = fence

    async def run_once(self) -> Wish:
        more = await self._step(tallying.advance) or await self._step(tallying.fold)
        return self._config.pause if more else self._config.every

    async def _step(self, act: Callable[[Connection, datetime, int], bool]) -> bool:
        def work(conn: Connection) -> bool:
            self._fence(conn)
            return act(conn, self.clock.now(), self._config.batch)

        return await self._db.write(work)
