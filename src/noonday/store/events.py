"""Events: what happened, as numbered rows that any instance can read on from where a listener stopped."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection, delete, func, or_, select

from noonday.store import dialects, meta
from noonday.store.front_tables import events
from noonday.store.notices import EVENTS, tell
from noonday.store.owners import owner
from noonday.store.tables import jobs

__all__ = ["Event", "Look", "News", "append", "bounds", "look", "prune"]

T = TypeVar("T")
_PRUNED = "events_pruned"  # all up to this number: what is missing beyond was never there, or is yet to come


@dataclass(frozen=True, slots=True, kw_only=True)
class News:
    """Something to be told, before it has its number."""

    at: datetime
    kind: str  # such as execution.ended
    job_id: str | None = None
    execution_id: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    seq: int
    at: datetime
    kind: str
    job_id: str | None
    execution_id: str | None
    payload: Mapping[str, Any]
    job_name: str | None  # as it is called now
    service: str | None  # whose the job is


@dataclass(frozen=True, slots=True)
class Look(Generic[T]):
    """A stretch of the table, and the oldest number that was still kept when it was read."""

    oldest: int
    events: tuple[T, ...]


def append(conn: Connection, news: Sequence[News]) -> None:
    """Numbered in the order given. Transactions beside each other may commit out of that order."""
    rows = [
        {
            "at": one.at,
            "kind": one.kind,
            "job_id": one.job_id,
            "execution_id": one.execution_id,
            "payload": one.payload if isinstance(one.payload, dict) else dict(one.payload),
        }
        for one in news
    ]
    if rows:
        dialects.of(conn).insert(conn, events, rows)
        tell(conn, EVENTS)


def bounds(conn: Connection) -> tuple[int, int]:
    """The oldest number that was not pruned, and the newest there is."""
    pruned = meta.count(conn, _PRUNED)
    newest = conn.execute(select(func.max(events.c.seq))).scalar()
    return pruned + 1, pruned if newest is None else newest


def look(
    conn: Connection,
    form: Callable[[Event], T],
    after: int,
    limit: int,
    upto: int | None = None,
    also: Collection[int] = (),
) -> Look[T]:
    """In order of the numbers: those beyond `after`, and those of `also` that turned up after all.

    Each is given its `form` here, in a thread of the store, where that keeps nobody from work.
    """
    wanted = events.c.seq > after
    if upto is not None:
        wanted &= events.c.seq <= upto
    if also:
        wanted = or_(wanted, events.c.seq.in_(also))
    query = (
        select(events, jobs.c.name.label("job_name"), owner(conn).label("service"))
        .join_from(events, jobs, jobs.c.id == events.c.job_id, isouter=True)
        .where(wanted)
        .order_by(events.c.seq)
        .limit(limit)
    )
    found = tuple(form(Event(**row)) for row in conn.execute(query).mappings())
    return Look(bounds(conn)[0], found)


def prune(conn: Connection, keep: int, limit: int = 5_000) -> int:
    """Forget all but the newest `keep`, the oldest first; returns how many went."""
    last = bounds(conn)[1] - keep
    if last <= meta.count(conn, _PRUNED):
        return 0
    pruned = meta.hold(conn, _PRUNED)
    old = select(events.c.seq).where(events.c.seq <= last).order_by(events.c.seq).limit(limit).subquery()
    through = conn.execute(select(func.max(old.c.seq))).scalar()
    if through is None:
        return 0
    meta.keep(conn, _PRUNED, max(through, pruned))
    return conn.execute(delete(events).where(events.c.seq <= through)).rowcount
