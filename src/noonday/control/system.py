"""How the scheduler fares: is it ready, is it well, how much waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, func, select

from noonday.clock import Clock
from noonday.domain.errors import NoondayError
from noonday.domain.job import Lane
from noonday.store import jobs, migrate
from noonday.store.database import Database
from noonday.store.jobs import JobFilter
from noonday.store.tables import CLAIMABLE, executions

__all__ = ["Health", "LocalStatus", "Readiness", "System"]

_PATIENCE = 5.0  # seconds that a probe waits for the database


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStatus:
    """What this instance knows of itself without asking the database."""

    instance_id: str
    started_at: datetime
    running: bool = True  # its planner and workers run; false where only the API does
    is_leader: bool = True
    draining: bool = False
    slots: int = 0
    busy: int = 0
    last_check_at: datetime | None = None  # the planner's newest pass
    circuit_breaker_state: str = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    checks: Mapping[str, str]  # name -> "ok", or what is wrong

    @property
    def ready(self) -> bool:
        return all(found == "ok" for found in self.checks.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    status: str  # healthy, draining, or unhealthy
    local: LocalStatus
    uptime_seconds: int
    queue: Mapping[Lane, int]
    cron_jobs: int


class System:
    def __init__(self, db: Database, clock: Clock, status: Callable[[], LocalStatus]) -> None:
        self._db = db
        self._clock = clock
        self._status = status
        self._migrated = False

    async def ready(self) -> Readiness:
        """Whether requests may be sent here; never raises."""
        checks = {"database": await self._reach()}
        if checks["database"] == "ok":
            checks["migrations"] = await self._migrations()
        checks["draining"] = "draining" if self._status().draining else "ok"
        return Readiness(checks=checks)

    async def health(self) -> Health:
        """Never raises either: an unhealthy scheduler says so."""
        now, local = self._clock.now(), self._status()
        try:
            async with asyncio.timeout(_PATIENCE):
                queue, cron_jobs = await self._db.read(lambda conn: _load(conn, now))
            status = "draining" if local.draining else "healthy"
        except (NoondayError, TimeoutError):
            queue, cron_jobs, status = {}, 0, "unhealthy"
        return Health(
            status=status,
            local=local,
            uptime_seconds=max(0, int((now - local.started_at).total_seconds())),
            queue=queue,
            cron_jobs=cron_jobs,
        )

    async def _reach(self) -> str:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._db.read(lambda conn: conn.execute(select(1)).scalar())
        except TimeoutError:
            return f"no answer within {_PATIENCE:g} s"
        except NoondayError as error:
            return str(error)
        return "ok"

    async def _migrations(self) -> str:
        if not self._migrated:
            url = self._db.url.render_as_string(hide_password=False)
            missing = await asyncio.to_thread(migrate.pending, url)
            if missing:
                return f"{len(missing)} missing: run noonday migrate"
            self._migrated = True
        return "ok"


def _load(conn: Connection, now: datetime) -> tuple[dict[Lane, int], int]:
    waiting = select(executions.c.lane, func.count()).where(CLAIMABLE, executions.c.available_at <= now)
    found = {Lane(lane): int(n) for lane, n in conn.execute(waiting.group_by(executions.c.lane))}
    cron_jobs = jobs.find(conn, JobFilter(schedule_type="cron"), limit=1).total
    return {lane: found.get(lane, 0) for lane in Lane}, cron_jobs
