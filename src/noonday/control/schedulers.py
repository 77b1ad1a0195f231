"""Recurring jobs as schedulers: how they fare together, and start, stop, pause, resume, restart, trigger."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.jobs import Jobs
from noonday.domain.errors import MoveRefused, NotFound
from noonday.domain.execution import Execution, ExecutionState
from noonday.domain.job import Job, JobState
from noonday.domain.schedulers import Action, is_recurring
from noonday.store import jobs, schedulers
from noonday.store.database import Database
from noonday.store.pages import Page
from noonday.store.schedulers import SchedulerRow, Totals

__all__ = ["MOST_SHOWN", "Acted", "Fleet", "Schedulers"]

MOST_SHOWN = 500
_BUSY = frozenset({JobState.RUNNING, JobState.PENDING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """How all of them fare; the worst ones come first where not all are shown."""

    totals: Totals
    shown: tuple[SchedulerRow, ...]

    @property
    def healthy(self) -> bool:
        return not self.totals.critical_down

    @property
    def truncated(self) -> bool:
        return len(self.shown) < self.totals.total


@dataclass(frozen=True, slots=True, kw_only=True)
class Acted:
    scheduler: SchedulerRow
    message: str
    execution: Execution | None = None  # that was started by it


class Schedulers:
    def __init__(self, db: Database, clock: Clock, jobs: Jobs) -> None:
        self._db = db
        self._clock = clock
        self._jobs = jobs

    async def fleet(self, service: str | None = None) -> Fleet:
        def look(conn: Connection) -> Fleet:
            shown = schedulers.worst(conn, MOST_SHOWN, service)
            return Fleet(totals=schedulers.totals(conn, service), shown=tuple(shown))

        return await self._db.read(look)

    async def page(self, *, limit: int, offset: int, service: str | None = None) -> Page[SchedulerRow]:
        """By name."""

        def look(conn: Connection) -> Page[SchedulerRow]:
            items = tuple(schedulers.page(conn, limit, offset, service))
            total = schedulers.totals(conn, service).total
            return Page(items=items, total=total, limit=limit, offset=offset)

        return await self._db.read(look)

    async def act(self, name: str, action: Action, by: str | None = None) -> Acted:
        """What is as wanted already is left so, which is a success."""

        def work(conn: Connection) -> Acted:
            job = jobs.lock(conn, name)
            if not is_recurring(job):
                raise NotFound(f"{name!r} is not a scheduler: it does not recur")
            message, execution = _Verbs(self._jobs, conn, self._clock.now(), job, by).do(action)
            found = schedulers.one(conn, job.id)
            assert found is not None
            return Acted(scheduler=found, message=f"{job.name} {message}", execution=execution)

        return await self._db.write(work)


@dataclass(frozen=True, slots=True)
class _Verbs:
    """The verbs on one job within one transaction; each tells what it did."""

    jobs: Jobs
    conn: Connection
    now: datetime
    job: Job
    by: str | None

    def do(self, action: Action) -> tuple[str, Execution | None]:
        match action:
            case Action.TRIGGER:
                return "runs now", self._run()
            case Action.RESTART:
                return self._restart()
            case Action.START:
                return self._start(), None
            case Action.STOP:
                return self._stop(), None
            case Action.PAUSE:
                return self._pause(), None
            case Action.RESUME:
                return self._resume(), None

    def _start(self) -> str:
        if self.job.state is JobState.CANCELLED:
            raise MoveRefused(self.job.state, JobState.SCHEDULED, "create a new job")
        if self.job.enabled and not self.job.paused:
            return "was started already"
        self._change(lambda job: replace(job, enabled=True))
        self._resume()
        return "was started"

    def _stop(self) -> str:
        if not self.job.enabled:
            return "was stopped already"
        self._change(lambda job: replace(job, enabled=False))
        return "was stopped"

    def _pause(self) -> str:
        if self.job.paused:
            return "was paused already"
        self.jobs.paused(self.conn, self.now, self.job.id, self.by)
        return "was paused"

    def _resume(self) -> str:
        if not self.job.paused:
            return "was not paused"
        self.jobs.resumed(self.conn, self.now, self.job.id, self.by)
        return "was resumed"

    def _restart(self) -> tuple[str, Execution | None]:
        """Start it; and what failed is tried again at once, unless a run of it is going on."""
        self._start()
        if self.job.last_status != ExecutionState.FAILED or self.job.state in _BUSY:
            return "was restarted", None
        return "was restarted and runs now, because its last run failed", self._run()

    def _run(self) -> Execution:
        return self.jobs.forced(self.conn, self.now, self.job.id, self.by)

    def _change(self, edit: Callable[[Job], Job]) -> None:
        self.jobs.changed(self.conn, self.now, self.job.id, edit, self.by)
