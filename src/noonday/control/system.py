"""How the scheduler fares: is it ready, is it well, how much waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy import Connection, select

from noonday.clock import Clock
from noonday.control.instances import leader_of
from noonday.domain.errors import NoondayError
from noonday.domain.execution import Road
from noonday.domain.job import JobState, Lane
from noonday.ports import Leader
from noonday.store import engine_versions, jobs, migrate
from noonday.store.backlog import backlog
from noonday.store.database import Database
from noonday.store.engine_versions import Figures
from noonday.store.jobs import JobFilter

__all__ = ["Health", "LocalStatus", "Readiness", "Summary", "System"]

_PATIENCE = 5.0  # seconds that a probe waits for the database


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStatus:
    """What this instance knows of itself without asking the database."""

    instance_id: str
    started_at: datetime
    running: bool = True  # its planner and workers run; false where only the API does
    is_leader: bool = True
    stopping: bool = False  # told to end: requests go elsewhere
    draining: bool = False  # takes no work, but still answers
    slots: int = 0
    busy: int = 0
    last_check_at: datetime | None = None  # the planner's newest pass
    circuit_breaker_state: str = "closed"
    road: str = "database"  # of its version 2 work: streams, or database


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
    leader: Leader | None  # of all instances


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All of the scheduler in figures; executions are those planned since `since`."""

    local: LocalStatus
    at: datetime
    since: datetime
    jobs: Mapping[JobState, int]
    queue: Mapping[Lane, int]
    engines: Mapping[Road, Figures]


class System:
    def __init__(
        self,
        db: Database,
        clock: Clock,
        status: Callable[[], LocalStatus],
        leader_key: str = "scheduler-leader",
    ) -> None:
        self._db = db
        self._clock = clock
        self._status = status
        self._leader_key = leader_key
        self._migrated = False

    async def ready(self) -> Readiness:
        """Whether requests may be sent here; never raises."""
        checks = {"database": await self._reach()}
        if checks["database"] == "ok":
            checks["migrations"] = await self._migrations()
        checks["draining"] = "draining" if self._status().stopping else "ok"
        return Readiness(checks=checks)

    async def health(self) -> Health:
        """Never raises either: an unhealthy scheduler says so."""
        now, local = self._clock.now(), self._status()
        try:
            async with asyncio.timeout(_PATIENCE):
                load = await self._db.read(lambda conn: self._load(conn, now))
            status = "draining" if local.draining else "healthy"
        except (NoondayError, TimeoutError):
            load, status = _Load(), "unhealthy"
        return Health(
            status=status,
            local=local,
            uptime_seconds=max(0, int((now - local.started_at).total_seconds())),
            queue=load.queue,
            cron_jobs=load.cron_jobs,
            leader=load.leader,
        )

    async def summary(self, hours: float = 24.0) -> Summary:
        now = self._clock.now()
        since = now - timedelta(hours=hours)

        def look(conn: Connection) -> Summary:
            return Summary(
                local=self._status(),
                at=now,
                since=since,
                jobs=jobs.count_by_state(conn),
                queue=backlog(conn, now).depths,
                engines=engine_versions.compare(conn, since),
            )

        return await self._db.read(look)

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

    def _load(self, conn: Connection, now: datetime) -> _Load:
        return _Load(
            queue=backlog(conn, now).depths,
            cron_jobs=jobs.count(conn, JobFilter(schedule_type="cron")),
            leader=leader_of(conn, self._leader_key, now),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Load:
    queue: Mapping[Lane, int] = field(default_factory=dict)
    cron_jobs: int = 0
    leader: Leader | None = None
