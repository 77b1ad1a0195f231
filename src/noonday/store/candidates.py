"""Candidates for a claim: what is due, by lane and age, held so that no other claimer gets it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Executable,
    Integer,
    Select,
    and_,
    bindparam,
    func,
    select,
    update,
)

from noonday.domain.execution import Road
from noonday.domain.job import Lane
from noonday.store import dialects
from noonday.store.columns import Instant
from noonday.store.definitions import KEPT
from noonday.store.dialects import Answers
from noonday.store.execution_rows import COLUMNS, WAITING_COLUMNS, Waiting, read_fields
from noonday.store.prepared import quick, spelled_out
from noonday.store.shortcuts import Asked
from noonday.store.tables import CLAIMABLE, HAS_STATE, WAITING, executions, jobs

AGED_SHARE: Final = 1 / 8  # of each claim, for work of lower lanes that has waited too long
ALL_ROADS: Final = tuple(Road)
DETOURS: Final = 4  # looks past jobs that somebody else holds


def _new_mark() -> str:
    return os.urandom(8).hex()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimOrder:
    instance_id: str
    limit: int
    now: datetime
    lease: timedelta
    ageing: timedelta = timedelta(minutes=5)  # after this long, lower lanes get a share before higher ones
    roads: tuple[Road, ...] = ALL_ROADS  # whose work is looked for in the database itself
    unfed: bool = False  # of the streams' road, only what is not on it
    overdue: timedelta = timedelta()  # only what has been available for so long
    lead: timedelta = timedelta()  # also what becomes available within it, if it surely starts then
    mark: str = field(default_factory=_new_mark)  # with it begin the tokens of all that is claimed

    @property
    def lease_until(self) -> datetime:
        return self.now + self.lease


_NOW: Final = bindparam("now", type_=Instant)
Front = tuple[Lane, Road]  # where work waits, in the order in which it is served
Heads = dict[Front, datetime | None]


def next_available_at(conn: Connection, roads: tuple[Road, ...] = ALL_ROADS) -> datetime | None:
    """When the next execution becomes claimable; in the past if some are now."""
    return first_of(_heads(conn, roads))


def first_of(heads: Heads) -> datetime | None:
    return min((at for at in heads.values() if at is not None), default=None)


def _heads(conn: Connection, roads: tuple[Road, ...]) -> Heads:
    return ask_heads(conn, roads)()


def ask_heads(conn: Connection, roads: tuple[Road, ...]) -> Callable[[], Heads]:
    """The earliest of each lane of each road: a few looks at the front of an index."""
    fronts, looks = _looks(roads)
    asked = looks.ask(conn)
    return lambda: dict(zip(fronts, asked.rows()[0], strict=True))


def ask_front(conn: Connection, where: Front, until: datetime, limit: int) -> Asked:
    """What waits there, held so that no other claimer gets it; whose jobs may be had is not asked."""
    lane, road = where
    return _front.ask(conn, lane=lane.value, road=road.value, now=until, count=limit)


def ask_due_among(conn: Connection, ids: Collection[str], until: datetime) -> Asked:
    """The same of these."""
    return _due_among.ask(conn, ids=ids, now=until)


@lru_cache
def _looks(roads: tuple[Road, ...]) -> tuple[tuple[Front, ...], quick]:
    """Made once: to make this statement takes longer than to run it."""
    fronts = tuple((lane, road) for lane in Lane for road in roads)
    looks = [
        select(executions.c.available_at)
        .where(CLAIMABLE, executions.c.road == road.value, executions.c.lane == lane.value)
        .order_by(executions.c.available_at)
        .limit(1)
        .scalar_subquery()
        .label(f"{lane.name}_{road.name}")
        for lane, road in fronts
    ]
    return fronts, quick(lambda _: select(*looks))


def due_until(conn: Connection, roads: tuple[Road, ...], until: datetime, most: int) -> int:
    """How many become claimable by then; no more than so many are counted of each lane of each road."""
    counts = conn.execute(_counts(roads), {"now": until, "count": most}).one()
    return min(sum(counts), most)


@lru_cache
def _counts(roads: tuple[Road, ...]) -> Executable:
    fronts = [
        select(executions.c.id)
        .where(CLAIMABLE, executions.c.road == road.value, executions.c.lane == lane.value)
        .where(executions.c.available_at <= _NOW)
        .limit(bindparam("count", type_=Integer))
        .subquery()
        for lane in Lane
        for road in roads
    ]
    return spelled_out(select(*(select(func.count()).select_from(one).scalar_subquery() for one in fronts)))


def claimable_among(dialect: Answers, name: str = "ids") -> ColumnElement[bool]:
    """Claimable ones of these: their ids are the way to find them."""
    waiting = HAS_STATE.in_(["pending", "queued"])
    return and_(dialect.listed(executions.c.id, name), waiting, executions.c.available_at.is_not(None))


@quick
def _due_among(dialect: Answers) -> Select[Any]:
    query = select(*WAITING_COLUMNS).where(claimable_among(dialect), executions.c.available_at <= _NOW)
    return dialect.skip_locked(query, executions)


_FRONT_OF_LANE: Final = (
    select(*WAITING_COLUMNS)
    .where(CLAIMABLE, executions.c.road == bindparam("road", type_=Integer))
    .where(executions.c.lane == bindparam("lane", type_=Integer), executions.c.available_at <= _NOW)
    .order_by(executions.c.available_at)
    .limit(bindparam("count", type_=Integer))
)


@quick
def _front(dialect: Answers) -> Select[Any]:
    return dialect.skip_locked(_FRONT_OF_LANE, executions)


@quick
def _front_beside(dialect: Answers) -> Select[Any]:
    free = ~dialect.listed(executions.c.job_id, "blocked")
    return dialect.skip_locked(_FRONT_OF_LANE.where(free), executions)


@quick
def _unfed_front(dialect: Answers) -> Select[Any]:
    free = ~dialect.listed(executions.c.job_id, "blocked")
    unfed = executions.c.enqueued_at.is_(None)
    return dialect.skip_locked(_FRONT_OF_LANE.where(unfed, free), executions)


@quick
def _jobs_to_lock(dialect: Answers) -> Select[Any]:
    return dialect.skip_locked(select(*KEPT).where(dialect.listed(jobs.c.id, "ids")), jobs)


@quick
def _whole(dialect: Answers) -> Select[Any]:
    return select(*COLUMNS).where(dialect.listed(executions.c.id, "ids"))


def whole(conn: Connection, ids: Collection[str]) -> dict[str, dict[str, Any]]:
    """All fields of these, which are locked."""
    return {row[0]: read_fields(row) for row in _whole(conn, ids=ids)} if ids else {}


@dataclass(slots=True, kw_only=True)
class Search:
    """Collects executions that may be started, with their jobs locked."""

    conn: Connection
    order: ClaimOrder
    kept: dict[str, Sequence[Any]] = field(default_factory=dict)  # the locked jobs' rows of KEPT
    blocked: set[str] = field(default_factory=set)  # jobs that another transaction holds
    seen: Heads | None = None  # while nothing was found that could change it

    def take(self, wanted: int) -> list[Waiting]:
        """The highest lane first, but a share for lower ones that have waited too long."""
        now = self.order.now - self.order.overdue
        until = now + self.order.lead
        self.seen = _heads(self.conn, self.order.roads)
        heads = {front: at for front, at in self.seen.items() if at is not None and at <= until}
        first = min((lane for lane, _ in heads), default=Lane.HIGH)
        found: dict[str, Waiting] = {}
        share, long_ago = _aged_share(wanted, now), now - self.order.ageing
        for front in sorted(heads, reverse=True):
            if front[0] is not first and heads[front] <= long_ago and share > len(found):
                found |= self._look(front, long_ago, share - len(found))
        for front in sorted(heads, key=lambda front: (front[0], heads[front])):
            if len(found) < wanted:
                found |= self._look(front, until, wanted)
        return list(found.values())[:wanted]

    def next_at(self) -> datetime | None:
        """As `next_available_at`, after what was taken is decided."""
        return first_of(self.seen or _heads(self.conn, self.order.roads))

    def these(self, ids: Collection[str]) -> list[Waiting]:
        """Those of them that are due and that nobody else holds, in the order in which they are served."""
        until = self.order.now + self.order.lead
        found = served(map(Waiting._make, ask_due_among(self.conn, ids, until).rows()))
        self._lock({one.job_id for one in found})
        return [one for one in found if one.job_id in self.kept]

    def _look(self, where: Front, until: datetime, limit: int) -> dict[str, Waiting]:
        """The front of a lane. What belongs to a job that somebody holds is passed by, not waited for."""
        found: dict[str, Waiting] = {}
        for _ in range(DETOURS):
            front = self._front(where, until, limit)
            self.seen = None if front else self.seen
            self._lock({one.job_id for one in front})
            found |= {one.id: one for one in front if one.job_id in self.kept}
            if len(found) >= limit or len(front) < limit:
                break
        return found

    def _front(self, where: Front, until: datetime, limit: int) -> list[Waiting]:
        lane, road = where
        bounds: dict[str, Any] = {"lane": lane.value, "road": road.value, "now": until, "count": limit}
        if self.order.unfed:
            rows = _unfed_front(self.conn, **bounds, blocked=self.blocked)
        elif self.blocked:
            rows = _front_beside(self.conn, **bounds, blocked=self.blocked)
        else:
            rows = ask_front(self.conn, where, until, limit).rows()
        return [*map(Waiting._make, rows)]

    def _lock(self, job_ids: set[str]) -> None:
        wanted = job_ids - self.kept.keys()
        if not wanted:
            return
        self.kept |= {row[0]: row for row in _jobs_to_lock(self.conn, ids=wanted)}
        if missing := wanted - self.kept.keys():
            self.blocked |= missing
            self._drop_orphans(missing)

    def _drop_orphans(self, job_ids: set[str]) -> None:
        """There is no foreign key, for its check would cost each planned row; a stray row is ended here."""
        dialect = dialects.of(self.conn)
        there = self.conn.execute(select(jobs.c.id).where(dialect.among(jobs.c.id, job_ids))).scalars()
        if orphans := job_ids - set(there):
            mine = dialect.among(executions.c.job_id, orphans)
            ended = {"state": "cancelled", "detail": "there is no such job", "completed_at": self.order.now}
            self.conn.execute(update(executions).where(WAITING, mine).values(ended))


def served(found: Iterable[Waiting]) -> list[Waiting]:
    """In the order in which they are served."""
    return sorted(found, key=lambda one: (one.lane, one.available_at))


def _aged_share(wanted: int, now: datetime) -> int:
    """Whole slots by the share, one more as often as the rest says; the clock's last digits are the die."""
    die = now.microsecond % 1000 / 1000
    return int(wanted * AGED_SHARE + 1 - die)
