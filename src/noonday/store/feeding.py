"""What the rows say about the streams: what is there or pledged, what is not, and what was lost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, Integer, Select, Update, bindparam, func, or_, select, update

from noonday.domain.execution import ExecutionId, Road
from noonday.domain.job import Lane
from noonday.ports import Parcel, Pledge
from noonday.store import dialects
from noonday.store.candidates import claimable_among
from noonday.store.columns import Id, Instant
from noonday.store.dialects import Answers
from noonday.store.prepared import prepared, spelled_out
from noonday.store.tables import CLAIMABLE, UNFED, executions

ALL_LANES: Final = tuple(Lane)
_NEXT: Final = select(func.min(executions.c.available_at)).where(UNFED)
_COLUMNS: Final = (executions.c.available_at, executions.c.lane, executions.c.id)
_LANES: Final = {lane.value: lane for lane in Lane}


def unfed(
    conn: Connection, before: datetime, limit: int, lanes: Collection[Lane] = ALL_LANES
) -> list[Pledge]:
    """Claimable until then and not put on the streams, oldest first; locked, leaving out what others hold."""
    bounds = {"before": before, "count": limit}
    if len(lanes) == len(ALL_LANES):
        return _pledges(_unfed(conn, **bounds))
    query = _UNFED_BY_THEN.where(executions.c.lane.in_([lane.value for lane in lanes]))
    return _pledges(conn.execute(dialects.of(conn).skip_locked(query, executions), bounds))


_BEFORE: Final = executions.c.available_at <= bindparam("before", type_=Instant)
_COUNT: Final = bindparam("count", type_=Integer)
_UNFED_BY_THEN: Final = (
    select(*_COLUMNS).where(UNFED, _BEFORE).order_by(executions.c.available_at).limit(_COUNT)
)


@prepared
def _unfed(dialect: Answers) -> Select[Any]:
    return dialect.skip_locked(_UNFED_BY_THEN, executions)


def next_unfed_at(conn: Connection) -> datetime | None:
    """When the earliest that is not on the streams becomes available."""
    found: datetime | None = conn.execute(_NEXT).scalar()
    return found


def unfed_until(conn: Connection, until: datetime, most: int) -> int:
    """How many of them become claimable by then; more than `most` are not counted."""
    found: int = conn.execute(_COUNT_UNFED, {"before": until, "count": most}).scalar_one()
    return found


_COUNT_UNFED: Final = spelled_out(
    select(func.count()).select_from(select(executions.c.id).where(UNFED, _BEFORE).limit(_COUNT).subquery())
)


@prepared
def _mark_fed(dialect: Answers) -> Update:
    on_streams = executions.c.road == Road.STREAMS.value
    query = update(executions).where(claimable_among(dialect), on_streams, executions.c.enqueued_at.is_(None))
    return query.values(enqueued_at=bindparam("now", type_=Instant))


def mark_fed(conn: Connection, ids: Collection[ExecutionId], now: datetime) -> None:
    """They are put on the streams now or at their moment. What was claimed meanwhile stays as it is."""
    _mark_fed(conn, ids=ids, now=now)


def suspects(
    conn: Connection, lane: Lane, before: datetime, limit: int, after: Pledge | None = None
) -> list[Pledge]:
    """Said to be on the streams and not claimed, though available since `before`; oldest first."""
    bounds = {"lane": lane.value, "before": before, "count": limit}
    if after is None:
        return _pledges(_suspects(conn, **bounds))
    last = after.parcel.execution_id
    return _pledges(_suspects_after(conn, **bounds, after=after.due_at, last=last))


_SUSPECTS: Final = (
    select(*_COLUMNS)
    .where(CLAIMABLE, executions.c.road == Road.STREAMS.value)
    .where(executions.c.lane == bindparam("lane", type_=Integer), _BEFORE)
    .where(executions.c.enqueued_at.is_not(None))
    .order_by(executions.c.available_at, executions.c.id)
    .limit(_COUNT)
)


@prepared
def _suspects(_: Answers) -> Select[Any]:
    return _SUSPECTS


@prepared
def _suspects_after(_: Answers) -> Select[Any]:
    after, last = bindparam("after", type_=Instant), bindparam("last", type_=Id)
    later = or_(executions.c.available_at > after, executions.c.id > last)
    return _SUSPECTS.where(executions.c.available_at >= after, later)


@prepared
def _unfeed(dialect: Answers) -> Update:
    query = update(executions).where(claimable_among(dialect), executions.c.enqueued_at.is_not(None))
    return query.values(enqueued_at=None)


def unfeed(conn: Connection, ids: Collection[ExecutionId]) -> int:
    """The streams lost them: they are to be put there anew."""
    return _unfeed(conn, ids=ids).rowcount


def _pledges(rows: Iterable[Sequence[Any]]) -> list[Pledge]:
    return [Pledge(row[0], Parcel(_LANES[row[1]], ExecutionId(row[2]))) for row in rows]
