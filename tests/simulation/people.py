"""What people do in a simulated world: they create, pause, resume, skip, edit, move, run and cancel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

from noonday.control.executions import Executions
from noonday.control.jobs import Jobs
from noonday.domain.errors import NoondayError
from noonday.domain.job import Job
from noonday.domain.schedule import Immediate, Interval, IntervalUnit
from tests.simulation.jobs import Drawn
from tests.simulation.universe import ProcessClock
from tests.simulation.world import Stretch, World

Deed = Callable[[], Awaitable[None]]


class People:
    """Their way to the database is safe, so that it is known what they did and when."""

    def __init__(self, world: World) -> None:
        self._world = world
        clock = ProcessClock(world.universe, 0.0)
        self._jobs = Jobs(world.desk, clock)
        self._executions = Executions(world.desk, clock)
        self._done: list[Any] = []

    def create(self, drawn: Drawn) -> None:
        async def deed() -> None:
            made = await self._jobs.create(drawn.job)
            world = self._world
            world.jobs[made.id] = made
            world.manners[made.id] = drawn.manner
            world.stretches[made.id] = [Stretch(world.time, made.timing)]
            world.say(f"{made.name} is created: {made.timing.schedule}, {drawn.manner}")
            world.say(f"  {made.misfire}, {made.overlapping}, {made.retry}, version {made.scheduler_version}")

        self._do(f"create {drawn.job.name}", deed)

    def act(self) -> None:
        """One deed by chance."""
        world = self._world
        if not world.jobs:
            return
        job = world.jobs[world.chance.choice(list(world.jobs))]
        deeds = {
            "pause": self._pause,
            "resume": self._resume,
            "edit": self._edit,
            "move": self._move,
            "run": self._run,
            "cancel": self._cancel,
        }
        if world.seed % 3 == 0:  # the other worlds stay as they were, so that a seed keeps its meaning
            deeds |= {"pause for a while": self._pause_for_a_while, "skip the next of": self._skip_next}
        name = world.chance.choice(["edit", *deeds])
        if job.name == "probe" and name not in {"resume", "move", "run", "cancel"}:
            return
        self._do(f"{name} {job.name}", lambda: deeds[name](job))

    def resume_all(self) -> None:
        for job in self._world.jobs.values():
            if self._world.stretches[job.id][-1].resting:
                self._do(f"resume {job.name}", lambda job=job: self._resume(job))  # type: ignore[misc]

    def _do(self, what: str, deed: Deed) -> None:
        async def doing() -> None:
            try:
                await deed()
                self._world.say(f"people {what}")
            except NoondayError as exc:
                self._world.say(f"people {what}: refused, {exc}")

        self._done.append(self._world.desk.process.begin(doing()))

    def check(self) -> None:
        """Raises what went wrong in a deed."""
        for task in self._done:
            if task.done():
                task.result()

    async def _pause(self, job: Job) -> None:
        saved = await self._jobs.pause(job.id)
        self._new_stretch(saved)

    async def _pause_for_a_while(self, job: Job) -> None:
        if isinstance(job.timing.schedule, Immediate):
            return  # it is due when the pause ends, whenever that is: not known here
        seconds = self._world.chance.choice([1, 3, 7, 12])
        until = self._world.universe.now + timedelta(seconds=seconds)
        saved = await self._jobs.pause(job.id, until=until)
        self._new_stretch(saved)

    async def _skip_next(self, job: Job) -> None:
        saved = await self._jobs.skip_next(job.id)
        assert saved.skipped_through is not None
        self._world.skipped.add((job.id, saved.skipped_through))

    async def _resume(self, job: Job) -> None:
        saved = await self._jobs.resume(job.id)
        self._new_stretch(saved)

    async def _edit(self, job: Job) -> None:
        if not isinstance(job.timing.schedule, Interval) or job.depends_on:
            return
        count = self._world.chance.choice([2, 4, 6, 9])
        schedule = replace(job.timing.schedule, count=count, unit=IntervalUnit.SECONDS)
        saved = await self._jobs.change(
            job.id, lambda old: replace(old, timing=replace(old.timing, schedule=schedule))
        )
        self._new_stretch(saved)

    async def _move(self, job: Job) -> None:
        await self._jobs.change(job.id, lambda old: replace(old, scheduler_version=3 - old.scheduler_version))

    async def _run(self, job: Job) -> None:
        await self._jobs.force_run(job.id)

    async def _cancel(self, job: Job) -> None:
        open_now = [one for one in self._world.bodies if one.job_id == job.id and one.ended is None]
        if open_now:
            await self._executions.cancel(open_now[-1].execution_id)
            self._world.cancelled.add(open_now[-1].execution_id)

    def _new_stretch(self, job: Job) -> None:
        world = self._world
        world.jobs[job.id] = replace(world.jobs[job.id], timing=job.timing)
        world.stretches[job.id].append(Stretch(world.time, job.timing, job.paused, job.paused_until))
