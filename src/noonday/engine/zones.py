"""When the time-zone data changes, computes future times anew: jobs keep wall-clock text and zone alone."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import structlog
from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.domain.planning import arm
from noonday.domain.zones import rules_changed, rules_mark
from noonday.engine.fence import Fence, no_fence
from noonday.engine.loop import Actor, Wish
from noonday.store import executions, jobs, records, zones
from noonday.store.database import Database
from noonday.store.jobs import Advance
from noonday.store.notices import JOBS, tell

log = structlog.get_logger(__name__)

_BEFORE_ALL = "00000000-0000-0000-0000-000000000000"
_EVERY = timedelta(hours=6)  # new data is seen by a new process; this is for zones that come into use


class Zones(Actor):
    """What is overdue stays as it is: it was due by the rules of its day, and the misfire policy decides."""

    name = "zones"

    def __init__(self, *, db: Database, clock: Clock, batch: int = 500, fence: Fence = no_fence) -> None:
        super().__init__(clock=clock)
        self._fence = fence
        self._db = db
        self._batch = batch

    async def run_once(self) -> Wish:
        for zone in await self._db.read(zones.in_use):
            mark = await self._db.read(partial(zones.mark, zone=zone))
            try:
                if mark is not None and not rules_changed(zone, mark):
                    continue
                fresh = rules_mark(zone, self.clock.now().year)
            except (OSError, ValueError):  # plain SQL may name a zone that does not exist
                continue
            if mark is not None:
                log.warning("the rules of a time zone have changed", action="zones", zone=zone)
                await self._compute_anew(zone)
            await self._db.write(partial(self._mark, zone, fresh))
        return _EVERY

    def _mark(self, zone: str, value: str, conn: Connection) -> None:
        self._fence(conn)
        zones.set_mark(conn, zone, value)

    async def _compute_anew(self, zone: str) -> None:
        beyond: str | None = _BEFORE_ALL
        while beyond is not None:
            beyond = await self._db.write(partial(self._batch_from, zone, beyond))

    def _batch_from(self, zone: str, beyond: str, conn: Connection) -> str | None:
        self._fence(conn)
        now = self.clock.now()
        found = zones.waiting(conn, zone, now, beyond, self._batch)
        changes = []
        for job in found:
            armed = arm(job, now)
            if armed.next_run_at != job.next_run_at:
                executions.plan(conn, records.lapses(job, armed.lapses, now))
                changes.append(
                    Advance(job_id=job.id, next_run_at=armed.next_run_at, fire_count=armed.fire_count)
                )
        jobs.advance(conn, changes)
        tell(conn, JOBS)
        return found[-1].id if len(found) == self._batch else None
