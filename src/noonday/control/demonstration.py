"""Jobs for show: put there with a past of their own, known by a mark, and taken away again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from noonday.clock import Clock
from noonday.control.jobs import Edit, Jobs, Vet
from noonday.control.services import ServiceUrls
from noonday.domain.breaker import BreakerPolicy, Heard
from noonday.domain.errors import Conflict
from noonday.domain.job import Job
from noonday.store import breakers, history, past
from noonday.store.database import Database
from noonday.store.jobs import JobFilter, count
from noonday.store.past import Ran

__all__ = ["BY", "MARK", "TAG", "Demonstration"]

BY: Final = "demo"  # who did it, for the audit
TAG: Final = "demo"
MARK: Final = {"demo": "noonday"}  # in the metadata: somebody else's tag is not ours
_MOST: Final = 1000
_ALL: Final = 36_500  # days, and more runs than any job is shown with
_STEP: Final = 2000
Lived = Callable[[Job], tuple[Sequence[Ran], datetime | None]]


class _Then:
    """A clock that shows another moment."""

    def __init__(self, at: datetime) -> None:
        self.at = at

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        return self.at.timestamp()

    async def sleep_until(self, when: datetime | None, wake: asyncio.Event) -> None:
        raise AssertionError("nothing sleeps in the past")


class Demonstration:
    def __init__(self, db: Database, clock: Clock, services: ServiceUrls, *, vet: Vet) -> None:
        self._db = db
        self._clock = clock
        self._vet = vet
        self.jobs = Jobs(db, clock, vet=vet)
        self.services = services

    async def others(self) -> int:
        """Jobs that are not part of it."""
        return await self._db.read(lambda conn: count(conn, JobFilter())) - len(await self.members())

    async def members(self) -> list[Job]:
        page = await self.jobs.find(JobFilter(tag=TAG), limit=_MOST, order="name")
        return [job for job in page.items if dict(job.metadata).items() >= MARK.items()]

    async def add(self, job: Job, by: str, lived: Lived) -> Job:
        """A new job as of the time of its making, with all that it has lived through since."""
        made = await Jobs(self._db, _Then(job.created_at), vet=self._vet).create(job, by)
        ran, next_run_at = lived(made)
        await self._db.write(partial(past.write, job=made, ran=ran, next_run_at=next_run_at))
        return made

    async def change(self, name: str, edit: Edit, by: str, at: datetime) -> None:
        """As somebody changed it then."""
        await Jobs(self._db, _Then(at), vet=self._vet).change(name, edit, by)

    async def break_down(self, domain: str, error: str) -> None:
        """As if calls to it had failed until its breaker opened."""
        policy = BreakerPolicy()
        heard = {domain: Heard(failures=policy.threshold, error=error)}
        await self._db.write(lambda conn: breakers.hear(conn, heard, policy, self._clock.now()))

    async def mend(self, domain: str) -> None:
        await self._db.write(lambda conn: breakers.reset(conn, domain, self._clock.now()))

    async def remove(self, services: Collection[str]) -> int:
        """All of it, with its history and what the audit tells of it; returns how many jobs there were."""
        members = await self.members()
        gone = await self._remove_jobs(members)
        ids = [job.id for job in members]
        await self._db.write(lambda conn: past.forget(conn, ids, services))
        # The runs of jobs that are gone, now and not when a scheduler next clears up; no others.
        clear = partial(history.prune, now=self._clock.now(), runs=_ALL, days=_ALL, limit=_STEP)
        while await self._db.write(clear) >= _STEP:
            pass
        return gone

    async def _remove_jobs(self, left: list[Job]) -> int:
        gone = 0
        while left:
            refused = []
            for job in left:
                try:
                    await self.jobs.remove(job.id, BY)
                except Conflict:  # another one still needs it
                    refused.append(job)
            if len(refused) == len(left):
                names = ", ".join(job.name for job in refused)
                raise Conflict(f"other jobs depend on {names}: remove those first")
            gone += len(left) - len(refused)
            left = refused
        return gone
