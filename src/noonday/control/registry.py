"""Jobs as services declare them, at each start and again: what people changed meanwhile stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control import dependencies
from noonday.control.jobs import Begun, Jobs
from noonday.domain.access import Caller
from noonday.domain.declaring import (
    ENABLED,
    Kept,
    Merge,
    Override,
    as_declared,
    declared,
    merge,
    ordered,
)
from noonday.domain.errors import Conflict, Invalid, NotAllowed, NotFound, Problem
from noonday.domain.job import Job, JobId
from noonday.store import declarations, engine_versions, jobs
from noonday.store.database import Database
from noonday.store.declarations import Declared
from noonday.store.jobs import JobFilter
from noonday.store.pages import Page
from noonday.store.run_counts import NO_RUNS, RunCounts, run_counts

__all__ = ["Declaration", "Listed", "Registered", "RegisteredAll", "Registry"]

T = TypeVar("T")
_TRIES = 3  # while others register the same names at the same moment


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """What a service says of one job. `job` is made from it alone, with what is usual where it is silent."""

    service: str
    job: Job
    named: frozenset[str]  # the fields that it is not silent about
    usual: Mapping[str, Any] = field(default_factory=dict)
    override: Override = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    job: Job
    created: bool = False
    changed: tuple[str, ...] = ()  # fields that follow the declaration since now
    kept: tuple[Kept, ...] = ()
    left_alone: bool = False  # it was there, and here that is a reason not to touch it


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredAll:
    jobs: tuple[Registered, ...]  # in the order of the declarations
    disabled: tuple[Job, ...]  # jobs that the service does not declare any more


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """A job as services look at it: whose it is and how often it ran."""

    job: Job
    service: str | None
    runs: RunCounts


class _Raced(Conflict):
    """Somebody else has registered or deleted the same name at this moment."""


class Registry:
    """`replace_existing`: whether a job that is there already follows what is declared of it."""

    def __init__(self, db: Database, clock: Clock, jobs: Jobs, *, replace_existing: bool = True) -> None:
        self._db = db
        self._clock = clock
        self._jobs = jobs
        self._replace_existing = replace_existing

    async def page(self, wanted: JobFilter, *, limit: int, offset: int) -> Page[Listed]:
        """By name."""

        def look(conn: Connection) -> Page[Listed]:
            found = jobs.find(conn, wanted, limit, offset, "name")
            return Page(items=_listed(conn, found.items), total=found.total, limit=limit, offset=offset)

        return await self._db.read(look)

    async def get(self, id_or_name: str) -> Listed:
        return await self._db.read(lambda conn: _listed(conn, [jobs.resolve(conn, id_or_name)])[0])

    async def register(self, said: Declaration, who: Caller) -> Registered:
        """Create the job, or let it follow the declaration; the same declaration again writes nothing."""
        _refuse_stranger(said.service, who)
        return await self._write(lambda conn, now: self._registered(conn, now, said, who))

    async def register_all(
        self, service: str, said: Sequence[Declaration], who: Caller, *, prune: bool = False
    ) -> RegisteredAll:
        """All jobs of a service, or none if one is wrong.

        `prune` disables those that it declared before and does not declare now.
        """
        _refuse_stranger(service, who)
        places = {one.job.name: place for place, one in enumerate(said)}
        by_name = sorted((one.job for one in said), key=lambda job: job.name)
        order = [places[job.name] for job in ordered(by_name)]

        def work(conn: Connection, now: datetime) -> RegisteredAll:
            if prune:
                declarations.clear(conn, service)
            here = declarations.lock_all(conn, service, places, own=prune)
            done = self._created_all(conn, now, service, _alone(said, here), who)
            done |= self._unchanged(conn, said, here)
            for place in order:
                if place not in done:
                    with _within(place):
                        done[place] = self._registered(conn, now, said[place], who)
            disabled = self._pruned(conn, now, service, places, who) if prune else ()
            return RegisteredAll(jobs=tuple(done[place] for place in range(len(said))), disabled=disabled)

        return await self._write(work)

    async def _write(self, work: Callable[[Connection, datetime], T]) -> T:
        for left in reversed(range(_TRIES)):
            try:
                return await self._db.write(lambda conn: work(conn, self._clock.now()))
            except _Raced as exc:
                if not left:
                    raise Conflict(str(exc)) from exc
        raise AssertionError("unreachable")

    def _registered(self, conn: Connection, now: datetime, said: Declaration, who: Caller) -> Registered:
        here = jobs.by_name(conn, said.job.name)
        if here is None:
            return self._created(conn, now, said, who)
        try:
            here = jobs.lock(conn, here.id)
        except NotFound as exc:
            raise _Raced from exc
        last = declarations.get(conn, here.id)
        _refuse_foreign(here, last, said, who)
        if not self._replace_existing:
            return Registered(job=here, left_alone=True)
        return self._merged(conn, now, here, last, said, who)

    def _created(self, conn: Connection, now: datetime, said: Declaration, who: Caller) -> Registered:
        declarations.clear(conn, said.service)
        try:
            made = self._jobs.created(conn, now, said.job, who.name)
        except Conflict as exc:
            raise _Raced(str(exc)) from exc
        _remember(conn, now, made, said.service, declared(made, said.named))
        return Registered(job=made, created=True)

    def _created_all(
        self, conn: Connection, now: datetime, service: str, said: Mapping[int, Declaration], who: Caller
    ) -> dict[int, Registered]:
        """In a few statements for all of them."""
        if not said:
            return {}
        new: dict[int, Begun] = {}
        made = engine_versions.of_their_time(conn, [one.job for one in said.values()])
        for place, job in zip(said, made, strict=True):
            with _within(place):
                new[place] = self._jobs.begun(now, job)
        try:
            self._jobs.create_all(conn, now, list(new.values()), who.name)
        except Conflict as exc:
            raise _Raced(str(exc)) from exc
        declarations.add_many(
            conn,
            [
                Declared(
                    job_id=one.job.id,
                    service=service,
                    body=declared(one.job, said[place].named),
                    declared_at=now,
                )
                for place, one in new.items()
            ],
        )
        return {place: Registered(job=one.job, created=True) for place, one in new.items()}

    def _unchanged(
        self, conn: Connection, said: Sequence[Declaration], here: Mapping[str, JobId]
    ) -> dict[int, Registered]:
        """Jobs that are locked and of which the service says what it said before: most of them, whenever it
        starts. All are looked at together and nothing is written; whatever else there is goes one by one.
        """
        again = {place: one for place, one in enumerate(said) if one.job.name in here and _free(one.job)}
        if not again or not self._replace_existing:
            return {}
        ids = [here[one.job.name] for one in again.values()]
        found, last = jobs.untouched(conn, ids), declarations.of(conn, ids)
        as_they_are = engine_versions.of_their_time(conn, list(found.values())) == list(found.values())
        done = {}
        for place, one in again.items() if as_they_are else ():
            job, before = found.get(here[one.job.name]), last.get(here[one.job.name])
            if job is None or before is None or before.service != one.service:
                continue
            new = declared(one.job.altered(id=job.id), one.named)
            if before.body != new:
                continue
            merged = merge(last=before.body, new=new, usual=one.usual, job=job, override=one.override)
            if not merged.taken:
                done[place] = Registered(job=job, kept=merged.kept)
        return done

    def _merged(
        self,
        conn: Connection,
        now: datetime,
        here: Job,
        last: Declared | None,
        said: Declaration,
        who: Caller,
    ) -> Registered:
        wanted = dependencies.resolved(conn, replace(said.job, id=here.id))
        new, merged = declared(wanted, said.named), Merge()

        def edit(job: Job) -> Job:
            nonlocal merged
            merged = merge(
                last=None if last is None else last.body,
                new=new,
                usual=said.usual,
                job=job,
                override=said.override,
            )
            return as_declared(job, wanted, merged.taken)

        job = self._jobs.changed(conn, now, here.id, edit, who.name)
        if last is None or (last.service, last.body) != (said.service, new):
            _remember(conn, now, job, said.service, new)
        return Registered(job=job, changed=merged.taken, kept=merged.kept)

    def _pruned(
        self, conn: Connection, now: datetime, service: str, names: Collection[str], who: Caller
    ) -> tuple[Job, ...]:
        """As if the service had said `enabled: false` of each: a person's word goes before it here too."""
        done = []
        for last in declarations.beside(conn, service, names):
            job = jobs.lock(conn, last.job_id)
            body = {**last.body, ENABLED: False}
            if ENABLED in merge(last=last.body, new=body, usual={ENABLED: True}, job=job).taken:
                done.append(self._jobs.changed(conn, now, job.id, _switched_off, who.name))
                _remember(conn, now, job, service, body)
        return tuple(done)


def _listed(conn: Connection, found: Sequence[Job]) -> tuple[Listed, ...]:
    ids = [job.id for job in found]
    services, runs = declarations.owners(conn, ids), run_counts(conn, ids)
    return tuple(
        Listed(job=job, service=services.get(job.id), runs=runs.get(job.id, NO_RUNS)) for job in found
    )


def _switched_off(job: Job) -> Job:
    return replace(job, enabled=False)


def _remember(conn: Connection, now: datetime, job: Job, service: str, body: Mapping[str, Any]) -> None:
    declarations.put(conn, Declared(job_id=job.id, service=service, body=body, declared_at=now))


def _refuse_stranger(service: str, who: Caller) -> None:
    if not who.owns(service):
        raise NotAllowed(f"{who.name} registers the jobs of {who.service!r} alone, not those of {service!r}")


def _refuse_foreign(here: Job, last: Declared | None, said: Declaration, who: Caller) -> None:
    owner = getattr(here.target, "service", None) if last is None else last.service
    if owner == said.service:
        return
    takes_over = isinstance(said.override, frozenset) and "service" in said.override
    if takes_over and not who.confined:
        return
    whose = "no service declared" if owner is None else "another service has"
    raise Conflict(
        f"the name {here.name!r} is taken by a job that {whose}; "
        'who is no service may take it over with "override": ["service"]'
    )


def _alone(said: Sequence[Declaration], here: Collection[str]) -> dict[int, Declaration]:
    """Those that are new and need no other job, by their places."""
    return {place: one for place, one in enumerate(said) if one.job.name not in here and _free(one.job)}


def _free(job: Job) -> bool:
    """Does it need no other job?"""
    return not (job.depends_on or job.on_success_of)


@contextmanager
def _within(place: int) -> Iterator[None]:
    """What is wrong with one of many says with which."""
    try:
        yield
    except Invalid as exc:
        problems = (Problem(f"jobs[{place}].{one.field}", one.message) for one in exc.problems)
        raise Invalid(*problems) from exc
