"""One action on many jobs: found by a search or named, looked at first, then done in small transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import partial
from itertools import islice
from typing import Final

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.jobs import Jobs
from noonday.domain import search_fields, searching
from noonday.domain.access import Right
from noonday.domain.errors import Conflict, Invalid, NoondayError, Problem
from noonday.domain.job import Job, JobId, JobState
from noonday.store import jobs
from noonday.store.database import Database
from noonday.store.jobs import JobFilter

__all__ = ["MOST", "RIGHTS", "SHOWN", "Action", "Bulk", "Choice", "Done", "Failure", "Preview", "choose"]

MOST: Final = 10_000  # jobs that one call changes
SHOWN: Final = 100  # jobs that a preview lists
_BATCH: Final = 25  # jobs that one transaction holds


class Action(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "cancel"
    RUN = "run"
    DELETE = "delete"
    ENABLE = "enable"
    DISABLE = "disable"


RIGHTS: Final[Mapping[Action, Right]] = {
    **dict.fromkeys(Action, Right.OPERATE),
    Action.RUN: Right.RUN,
    Action.DELETE: Right.EDIT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which jobs: those that the filter finds, or those of them that are named, by name or id."""

    filter: JobFilter
    named: tuple[str, ...] | None = None


def choose(
    search: str | None,
    named: Sequence[str] | None,
    now: datetime,
    *,
    all: bool = False,
    service: str | None = None,
    called: str = "filter",
) -> Choice:
    """By a search, by names, or all; `service` confines it to that service's jobs."""
    terms = searching.parse(search or "", search_fields.JOBS, now, called)
    if sum((bool(terms), named is not None, all)) > 1:
        raise Invalid(Problem(called, "choose by a search, by names, or all: by one of the three"))
    if not terms and named is None and not all:
        raise Invalid(Problem(called, "is empty and would find every job: say all if that is meant"))
    return Choice(
        filter=JobFilter(terms=terms, service=service), named=None if named is None else tuple(named)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    job_id: str | None  # None = there is no such job
    name: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    matched: int
    jobs: tuple[Job, ...]  # the first of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    matched: int
    done: int
    unchanged: int  # were as wanted already, or do not match any more
    failed: tuple[Failure, ...]


@dataclass(frozen=True, slots=True)
class _Tally:
    done: int = 0
    unchanged: int = 0
    failed: tuple[Failure, ...] = ()

    def __add__(self, other: _Tally) -> _Tally:
        return _Tally(self.done + other.done, self.unchanged + other.unchanged, (*self.failed, *other.failed))


_Names = Mapping[JobId, str]
_Verb = Callable[[Connection, datetime, str, str | None], object]


class Bulk:
    def __init__(self, db: Database, clock: Clock, control: Jobs) -> None:
        self._db = db
        self._clock = clock
        self._verbs: Mapping[Action, _Verb] = {
            Action.PAUSE: control.paused,
            Action.RESUME: control.resumed,
            Action.CANCEL: control.cancelled,
            Action.RUN: control.forced,
            Action.DELETE: control.removed,
            Action.ENABLE: control.enabled,
            Action.DISABLE: control.disabled,
        }

    async def preview(self, choice: Choice) -> Preview:
        def look(conn: Connection) -> Preview:
            found, _ = _chosen(conn, choice)
            first = replace(choice.filter, ids=frozenset(islice(found, SHOWN)))
            page = jobs.find(conn, first, limit=SHOWN, order="created_at")
            return Preview(matched=len(found), jobs=page.items)

        return await self._db.read(look)

    async def act(
        self, action: Action, choice: Choice, by: str | None = None, *, expect: int | None = None
    ) -> Done:
        """With `expect`, only if just so many match. One that fails does not stop the others."""
        found, unknown = await self._db.read(lambda conn: _chosen(conn, choice))
        if expect is not None and expect != len(found):
            raise Conflict(f"{len(found):,} jobs match, not the {expect:,} expected: nothing was done")
        tally = await self._pass(action, choice.filter, found, by)
        if action is Action.DELETE:
            tally = await self._delete_parents(choice.filter, found, tally, by)
        return Done(
            matched=len(found), done=tally.done, unchanged=tally.unchanged, failed=(*unknown, *tally.failed)
        )

    async def _pass(self, action: Action, wanted: JobFilter, found: _Names, by: str | None) -> _Tally:
        tally = _Tally()
        # What was made later is more likely to need what was made before than the other way round.
        order = list(found)[::-1] if action is Action.DELETE else list(found)
        for batch in _batches(found, order):
            work = partial(self._batch, action=action, wanted=wanted, batch=batch, by=by)
            tally += await self._db.write(work)
        return tally

    async def _delete_parents(
        self, wanted: JobFilter, found: _Names, tally: _Tally, by: str | None
    ) -> _Tally:
        """A job that others need can go once they are gone, which may be among the same jobs."""
        last = _Tally(done=1)
        while tally.failed and last.done:
            left = {JobId(one.job_id): found[JobId(one.job_id)] for one in tally.failed if one.job_id}
            last = await self._pass(Action.DELETE, wanted, left, by)
            tally = _Tally(tally.done, tally.unchanged) + last
        return tally

    def _batch(
        self, conn: Connection, *, action: Action, wanted: JobFilter, batch: _Names, by: str | None
    ) -> _Tally:
        now = self._clock.now()
        still = jobs.named(conn, replace(wanted, ids=frozenset(batch)), len(batch))
        tally = _Tally(unchanged=len(batch) - len(still))
        for job_id, name in batch.items():
            if job_id not in still:
                continue
            try:
                with conn.begin_nested():
                    job = jobs.lock(conn, job_id)
                    if _as_wanted(action, job):
                        tally += _Tally(unchanged=1)
                        continue
                    self._verbs[action](conn, now, job_id, by)
                    tally += _Tally(done=1)
            except NoondayError as exc:
                tally += _Tally(failed=(Failure(job_id=job_id, name=name, error=str(exc)),))
        return tally


def _as_wanted(action: Action, job: Job) -> bool:
    match action:
        case Action.PAUSE:
            return job.paused
        case Action.RESUME:
            return not job.paused
        case Action.CANCEL:
            return job.state is JobState.CANCELLED
        case Action.ENABLE:
            return job.enabled
        case Action.DISABLE:
            return not job.enabled
        case _:
            return False


def _chosen(conn: Connection, choice: Choice) -> tuple[_Names, list[Failure]]:
    """The jobs by id, oldest first; and the names under which there is none that may be touched."""
    wanted, unknown = choice.filter, list[Failure]()
    if choice.named is not None:
        meant = jobs.ids_of(conn, choice.named)
        wanted = replace(wanted, ids=frozenset(meant.values()))
    found = jobs.named(conn, wanted, MOST + 1)
    if len(found) > MOST:
        count = jobs.count(conn, wanted)
        raise Invalid(Problem("filter", f"finds {count:,} jobs, and one call changes at most {MOST:,}"))
    if choice.named is not None:
        strangers = [ref for ref in dict.fromkeys(choice.named) if meant.get(ref) not in found]
        unknown = [Failure(job_id=None, name=ref, error=f"there is no job {ref!r}") for ref in strangers]
    return found, unknown


def _batches(found: _Names, order: Sequence[JobId]) -> Iterator[_Names]:
    for start in range(0, len(order), _BATCH):
        yield {job_id: found[job_id] for job_id in order[start : start + _BATCH]}
