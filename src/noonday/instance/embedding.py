"""The scheduler inside another program: a few lines start it, and leaving the block stops it in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

import structlog

from noonday.clock import Clock, shared_clock
from noonday.control.jobs import Jobs
from noonday.domain.errors import NotFound, invalid
from noonday.domain.execution import Execution
from noonday.domain.job import Job, JobId
from noonday.domain.schedule import Cron, Interval, IntervalUnit, Manual, Once, Schedule, Timing
from noonday.domain.target import PythonTarget, Target
from noonday.engine.engine import EngineConfig, Role
from noonday.ids import new_id
from noonday.instance.parts import assembled, made_up_id
from noonday.store import history
from noonday.targets.config import TargetsConfig
from noonday.targets.tasks import TaskRegistry, make_task, registered

Runnable = str | Target | Callable[..., Any]


class Scheduler:
    """Runs jobs in this process, on SQLite or on a database shared with others.

        async with Scheduler("sqlite:///jobs.db") as scheduler:
            await scheduler.add("refresh", refresh, every=timedelta(minutes=5))
            await asyncio.Event().wait()

    Leaving the block lets running work finish, for as long as `grace` says, and hands back the rest.
    """

    def __init__(
        self,
        url: str = "sqlite:///.noonday/noonday.db",
        *,
        workers: int = 10,
        grace: timedelta = timedelta(seconds=30),
        tasks: TaskRegistry = registered,
        clock: Clock | None = None,
    ) -> None:
        self._url = url
        self._grace = grace
        self._tasks = tasks
        self._clock = clock or shared_clock(url)
        roles = frozenset({Role.SCHEDULER, Role.WORKER})
        self._config = EngineConfig(instance_id=made_up_id(), roles=roles, slots=workers)
        self._stop = asyncio.Event()

    async def __aenter__(self) -> Self:
        _log_as_the_program_does()
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._life = asyncio.create_task(self._live(ready), name="noonday")
        await asyncio.wait([ready, self._life], return_when=asyncio.FIRST_COMPLETED)
        if self._life.done():
            self._life.result()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, stack: TracebackType | None
    ) -> None:
        self._stop.set()
        await self._life

    async def _live(self, ready: asyncio.Future[None]) -> None:
        async with assembled(
            database_url=self._url,
            clock=self._clock,
            config=self._config,
            targets=lambda secret: TargetsConfig(signing_secret=secret, tasks=self._tasks, clock=self._clock),
            stop=self._stop,
        ) as parts:
            self._db = parts.db
            self.jobs = Jobs(parts.db, self._clock)
            await parts.engine.begin()
            async with asyncio.TaskGroup() as group:
                actors = [group.create_task(actor.run(), name=actor.name) for actor in parts.actors]
                ready.set_result(None)
                await self._stop.wait()
                await parts.engine.finish(self._grace)
                for actor in actors:
                    actor.cancel()

    async def add(
        self,
        name: str,
        run: Runnable,
        *,
        cron: str | None = None,
        every: timedelta | None = None,
        at: datetime | None = None,
        **fields: Any,
    ) -> Job:
        """Add a job, or give the one of this name this definition: a program says it at each start.

        One of `cron`, `every` and `at` says when; without any it runs when asked. Further fields are those of
        Job and of Timing, such as `timezone`, `max_runs`, `retry` or `overlapping`.
        """
        now = self._clock.now()
        bounds = {key: fields.pop(key) for key in list(fields) if key in Timing.__dataclass_fields__}
        timing = Timing(schedule=_schedule(cron, every, at), anchor_at=now)
        made = Job(
            id=JobId(new_id(now)),
            name=name,
            timing=replace(timing, **bounds),
            target=self._target(run),
            created_at=now,
            updated_at=now,
        )
        made = replace(made, **fields)
        try:
            return await self.jobs.change(name, lambda old: _redefined(old, made, fields), by="program")
        except NotFound:
            return await self.jobs.create(made, by="program")

    async def run(self, name: str, config: dict[str, Any] | None = None) -> Execution:
        """One run now, beside the schedule."""
        return await self.jobs.force_run(name, by="program", config=config)

    async def history(self, name: str, limit: int = 50) -> list[Execution]:
        """Newest first."""
        job = await self.jobs.get(name)
        return list((await self._db.read(lambda conn: history.page(conn, job.id, limit))).items)

    def _target(self, run: Runnable) -> Target:
        if isinstance(run, str):
            return PythonTarget(task=run)
        return PythonTarget(task=self._tasks.add(make_task(run)).name) if callable(run) else run


def _schedule(cron: str | None, every: timedelta | None, at: datetime | None) -> Schedule:
    if sum(given is not None for given in (cron, every, at)) > 1:
        raise invalid("schedule", (cron, every, at), "is more than one schedule: give cron, every or at")
    if cron is not None:
        return Cron(expression=cron)
    if every is not None:
        return _interval(every)
    return Manual() if at is None else Once(run_at=at)


def _interval(every: timedelta) -> Interval:
    if every < timedelta(seconds=1) or every % timedelta(seconds=1):
        raise invalid("every", str(every), "must be whole seconds, at least one")
    for unit in (IntervalUnit.DAYS, IntervalUnit.HOURS, IntervalUnit.MINUTES):
        if not every % timedelta(**{unit.value: 1}):
            return Interval(count=every // timedelta(**{unit.value: 1}), unit=unit)
    return Interval(count=every // timedelta(seconds=1), unit=IntervalUnit.SECONDS)


def _redefined(old: Job, new: Job, fields: dict[str, Any]) -> Job:
    """What the program says, the rest left as it is; the rhythm keeps its anchor unless it changes."""
    timing = replace(new.timing, anchor_at=old.timing.anchor_at)
    if timing != old.timing:
        timing = new.timing
    named = {key: getattr(new, key) for key in fields}
    return replace(old, timing=timing, target=new.target, **named)


def _log_as_the_program_does() -> None:
    """A library does not print: without a choice of the program's own, lines go to the standard logging."""
    if not structlog.is_configured():
        structlog.configure(
            processors=[structlog.stdlib.filter_by_level, structlog.stdlib.render_to_log_kwargs],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
        )
