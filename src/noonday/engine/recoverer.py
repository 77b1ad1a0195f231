"""Settles what nobody holds any more: executions whose worker died, remote runs that fell silent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.engine import looks
from noonday.engine.counters import Counters
from noonday.engine.events import recovered
from noonday.engine.leases import Leases
from noonday.engine.loop import Actor, Wish
from noonday.store import events, executions
from noonday.store.database import Database
from noonday.store.executions import Ending

log = structlog.get_logger(__name__)

_BREATH = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecovererConfig:
    lease: timedelta = timedelta(seconds=30)
    batch: int = 200


class Recoverer(Actor):
    """Sleeps until the earliest lease ends. A lease given meanwhile lasts longer than that sleep."""

    name = "recoverer"

    def __init__(
        self,
        *,
        db: Database,
        clock: Clock,
        leases: Leases,
        counters: Counters,
        chance: Callable[[], float],
        config: RecovererConfig,
    ) -> None:
        super().__init__(clock=clock)
        self._db = db
        self._leases = leases
        self._counters = counters
        self._chance = chance
        self._config = config

    async def take_back(self, instance_id: str) -> int:
        """For an instance whose id a person gave it, at its start: what it held died with its process."""
        taken = 0
        while found := await self._db.write(partial(self._take_back, instance_id)):
            taken += found
        return taken

    async def run_once(self) -> Wish:
        full = True
        while full:
            now = self.clock.now()
            dead, next_end = await self._db.write(partial(self._recover, now))
            full = dead == self._config.batch
        wish = min(next_end or now + self._config.lease, now + self._config.lease)
        return max(wish, now + _BREATH)  # what is over and still held here is being stopped

    def _recover(self, now: datetime, conn: Connection) -> tuple[int, datetime | None]:
        # What this process still holds is not lost: it is being stopped, or its ending waits for its turn.
        dead = executions.expired(conn, now, self._config.batch)
        endings = [ending for ending in dead if ending.execution_id not in self._leases]
        self._settle(conn, endings, now)
        return len(endings), executions.next_lease_end(conn)

    def _take_back(self, instance_id: str, conn: Connection) -> int:
        now = self.clock.now()
        return self._settle(conn, looks.held_by(conn, instance_id, now), now)

    def _settle(self, conn: Connection, endings: Sequence[Ending], now: datetime) -> int:
        settled = executions.settle(conn, endings, now, self._chance())
        events.append(conn, [recovered(settlement, now) for settlement in settled])
        for settlement in settled:
            self._counters.recovered += 1
            log.warning(
                "an execution without a living lease is settled",
                action="recover",
                execution_id=settlement.execution.id,
                job_id=settlement.execution.job_id,
                state=str(settlement.execution.state),
                detail=settlement.execution.detail,
            )
        return len(settled)
