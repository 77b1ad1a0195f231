"""The desk at which a command works: the control verbs behind the API, straight on the database."""

from __future__ import annotations

import asyncio
import getpass
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import TypeVar

from noonday.cli.database import ready
from noonday.cli.errors import Hint
from noonday.cli.policies import vet, vet_url
from noonday.clock import SyncedClock, SystemClock, shared_clock
from noonday.control.audit import Audit
from noonday.control.breakers import Breakers
from noonday.control.bulk import Bulk
from noonday.control.engines import Engines
from noonday.control.executions import Executions
from noonday.control.instances import Instances
from noonday.control.jobs import Jobs
from noonday.control.keys import Keys
from noonday.control.services import ServiceUrls
from noonday.control.triggers import Triggers
from noonday.domain.breaker import BreakerPolicy
from noonday.domain.errors import NoondayError, NotFound
from noonday.domain.job import Job
from noonday.engine.timekeeper import Timekeeper
from noonday.instance.policies import store_options
from noonday.settings import Settings, load
from noonday.store.database import Database
from noonday.store.jobs import JobFilter

__all__ = ["Desk", "at_desk", "user"]

T = TypeVar("T")
_NAMES = 1000  # how many names are looked through for a near one


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    settings: Settings
    jobs: Jobs
    bulk: Bulk
    audit: Audit
    executions: Executions
    breakers: Breakers
    instances: Instances
    engines: Engines
    keys: Keys
    triggers: Triggers
    services: ServiceUrls
    clock: SystemClock
    by: str  # who is at the keyboard, for the audit

    async def job(self, ref: str) -> Job:
        """The job of that name or id; an unknown one is answered with near names."""
        try:
            return await self.jobs.get(ref)
        except NotFound as exc:
            raise await self.hinted(exc, ref) from exc

    async def hinted(self, error: NoondayError, ref: str) -> NoondayError:
        if not isinstance(error, NotFound):
            return error
        page = await self.jobs.find(JobFilter(), limit=_NAMES, offset=0)
        names = [job.name for job in page.items]
        if not names:
            return Hint(error, "there are no jobs yet: noonday jobs add --help")
        near = get_close_matches(ref, names, n=3, cutoff=0.5)
        return Hint(error, f"did you mean {' or '.join(near)}?" if near else "noonday jobs list")


def at_desk(work: Callable[[Desk], Awaitable[T]], database_url: str | None, *, make: bool = False) -> T:
    """Run `work` on the database in force; `make` = it may be made if there is none."""
    settings = load(database_url=database_url)
    ready(settings.database_url, make=make)
    return asyncio.run(_work(work, settings))


async def _work(work: Callable[[Desk], Awaitable[T]], settings: Settings) -> T:
    database = Database(settings.database_url, store_options(settings))
    clock = shared_clock(settings.database_url)
    try:
        if isinstance(clock, SyncedClock):
            await Timekeeper(db=database, clock=clock).run_once()
        jobs = Jobs(database, clock, vet=partial(vet, settings))
        desk = Desk(
            settings=settings,
            jobs=jobs,
            bulk=Bulk(database, clock, jobs),
            audit=Audit(database, jobs),
            executions=Executions(database, clock),
            breakers=Breakers(database, clock, BreakerPolicy(open_for=settings.cb_timeout)),
            instances=Instances(database, clock, settings.leader_key),
            engines=Engines(database, clock),
            keys=Keys(database, clock),
            triggers=Triggers(database, clock, jobs),
            services=ServiceUrls(database, clock, settings.services, vet=partial(vet_url, settings)),
            clock=clock,
            by=user(),
        )
        return await work(desk)
    finally:
        await database.close()


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # no entry for this uid, as in some containers
        return "cli"
