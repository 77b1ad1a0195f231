"""The two engines as people handle them: compare them, move jobs from one to the other, end the migration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.jobs import NOBODY
from noonday.domain.errors import Conflict, Invalid, Problem
from noonday.domain.execution import Road
from noonday.store import audit, engine_versions, jobs
from noonday.store.audit import AuditEntry
from noonday.store.database import Database
from noonday.store.engine_versions import Figures, Named

__all__ = ["Choice", "Comparison", "Engines", "Move", "verdict"]

T = TypeVar("T")
_BATCH = 500  # jobs that move in one transaction
_SHOWN = 10  # names in a message
_ENOUGH = 20  # runs from which on a comparison says something
_WORSE = 1.5  # so many times later is later
_NOTICEABLE = timedelta(milliseconds=250)
_FAILS_MORE = 0.02  # a rate higher by so much


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    hours: float
    engines: Mapping[Road, Figures]
    finished_at: datetime | None
    verdict: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which jobs: all, those with a tag, or those named by name or id."""

    all: bool = False
    jobs: tuple[str, ...] = ()
    tag: str | None = None

    def __post_init__(self) -> None:
        if sum((self.all, bool(self.jobs), self.tag is not None)) != 1:
            raise Invalid(Problem("jobs", "name jobs, or a tag, or say all: one of the three"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    to: Road
    count: int  # of those that were on the other engine
    names: tuple[str, ...]
    dry_run: bool


class Engines:
    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    async def compare(self, hours: float = 24.0) -> Comparison:
        since = self._clock.now() - timedelta(hours=hours)

        def look(conn: Connection) -> Comparison:
            found = engine_versions.compare(conn, since)
            finished_at = engine_versions.finished_at(conn)
            return Comparison(
                hours=hours,
                engines=found,
                finished_at=finished_at,
                verdict=verdict(found[Road.DATABASE], found[Road.STREAMS], finished=finished_at is not None),
            )

        return await self._db.read(look)

    async def move(self, choice: Choice, to: Road, by: str | None = None, *, dry_run: bool = False) -> Move:
        """What runs ends where it began; what waits goes along. One that is there already is left alone."""
        names: list[str] = []
        pick = partial(_pick, choice, to)
        after = ""
        while found := await self._db.read(partial(pick, after)):
            moved = found if dry_run else await self._write(partial(_move, found, to, by))
            names += moved.values()
            after = max(found)
            if choice.jobs:
                break
        return Move(to=to, count=len(names), names=tuple(names), dry_run=dry_run)

    async def finish(self, by: str | None = None) -> datetime:
        """End the migration: from now on there is version 2 alone. Again changes nothing."""

        def work(conn: Connection, now: datetime) -> datetime:
            left = engine_versions.count_elsewhere(conn, Road.STREAMS)
            if left:
                names = engine_versions.elsewhere(conn, Road.STREAMS, limit=_SHOWN).values()
                raise Conflict(f"{_counted(left)} still of version 1: {_listed(list(names), left)}")
            found = engine_versions.finished_at(conn)
            if found is not None:
                return found
            engine_versions.finish(conn, now)
            _record(conn, now, by, "finish", {"finished_at": None}, {"finished_at": now.isoformat()})
            return now

        return await self._write(work)

    async def reopen(self, by: str | None = None) -> bool:
        """Let there be version 1 again; whether it had been finished."""

        def work(conn: Connection, now: datetime) -> bool:
            found = engine_versions.finished_at(conn)
            if found is None:
                return False
            engine_versions.reopen(conn)
            _record(conn, now, by, "reopen", {"finished_at": found.isoformat()}, {"finished_at": None})
            return True

        return await self._write(work)

    async def _write(self, work: Callable[[Connection, datetime], T]) -> T:
        return await self._db.write(lambda conn: work(conn, self._clock.now()))


def _pick(choice: Choice, to: Road, after: str, conn: Connection) -> Named:
    if to is Road.DATABASE and engine_versions.finished_at(conn) is not None:
        raise Conflict(
            "the migration to version 2 is finished; undo that first: noonday engine finish --undo"
        )
    if choice.jobs:
        named = (jobs.resolve(conn, ref) for ref in choice.jobs)
        return {job.id: job.name for job in named if job.scheduler_version != to}
    return engine_versions.elsewhere(conn, to, choice.tag, after, _BATCH)


def _move(found: Named, to: Road, by: str | None, conn: Connection, now: datetime) -> Named:
    moved = engine_versions.move(conn, found, to, now)
    for job_id, was in moved.items():
        before, after = {"scheduler_version": was.had}, {"scheduler_version": to.value}
        actor = by or NOBODY
        entry = AuditEntry(now, actor, "update", "job", job_id, before, after, was.revision)
        audit.record(conn, entry)
    return {job_id: found[job_id] for job_id in moved}


def _record(
    conn: Connection,
    now: datetime,
    by: str | None,
    action: str,
    before: Mapping[str, object],
    after: Mapping[str, object],
) -> None:
    audit.record(conn, AuditEntry(now, by or NOBODY, action, "engine", "2", before, after))


def verdict(old: Figures, new: Figures, *, finished: bool) -> str:
    """How version 2 stands beside version 1, in words."""
    if finished:
        return "the migration is finished: everything is version 2"
    if not old.jobs:
        return "no job is left on version 1: the migration can be finished"
    if not new.jobs:
        return "no job is on version 2 yet: move a few and compare"
    if new.ended < _ENOUGH:
        return f"too early to tell: version 2 has ended {new.ended} runs in this time"
    doubts = list(_doubts(old, new))
    if doubts:
        return "version 2 does worse: " + "; ".join(doubts)
    return "version 2 does at least as well as version 1: more jobs can be moved"


def _doubts(old: Figures, new: Figures) -> Iterator[str]:
    fails, failed = new.failure_rate or 0.0, old.failure_rate or 0.0
    if old.ended >= _ENOUGH and fails > failed + _FAILS_MORE:
        yield f"it fails more often ({fails:.1%} against {failed:.1%}), which may be the jobs' own doing"
    if old.lateness is None or new.lateness is None or old.ended < _ENOUGH:
        return
    if new.lateness.p95 > max(old.lateness.p95 * _WORSE, old.lateness.p95 + _NOTICEABLE):
        late, before = new.lateness.p95.total_seconds(), old.lateness.p95.total_seconds()
        yield f"it starts later (p95 {late:.2f} s against {before:.2f} s)"


def _counted(count: int) -> str:
    return "1 job is" if count == 1 else f"{count:,} jobs are"


def _listed(names: list[str], total: int) -> str:
    more = f" and {total - len(names):,} more" if total > len(names) else ""
    return ", ".join(names) + more
