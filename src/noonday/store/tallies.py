"""What was due in each stretch of time and what became of it: read from tallies where it is settled."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Connection, Select, Text, case, func, select
from sqlalchemy import cast as cast_to

from noonday.domain.execution import ExecutionState
from noonday.ids import first_id
from noonday.store import dialects, meta
from noonday.store.front_tables import stragglers, tallies
from noonday.store.owners import owned_by
from noonday.store.tables import executions, jobs

__all__ = ["SLOT", "TALLIED", "Counted", "Width", "counted", "slot_of", "sums"]

SLOT: Final = timedelta(minutes=10)  # what one row of tallies stands for
TALLIED: Final = "tallied"  # in meta: executions with a lower id are in the tallies, or stragglers
_EARLY: Final = timedelta(hours=1)  # more than any run is planned ahead of its time
_ZERO: Final = "0001-01-01 00:00"
_ENDS: Final = {
    state: tallies.c[state.value]
    for state in (
        ExecutionState.COMPLETED,
        ExecutionState.FAILED,
        ExecutionState.CANCELLED,
        ExecutionState.SKIPPED,
    )
}


class Width(IntEnum):
    """How much of an instant's text tells its stretch; both databases write it in UTC."""

    HOUR = len("2027-01-01 12")
    SLOT = len("2027-01-01 12:0")


@dataclass(slots=True)
class Counted:
    """Due instants by what became of them, of which one row may stand for many that were skipped."""

    states: dict[ExecutionState, int] = field(default_factory=dict)
    busy: timedelta = timedelta()  # all runs together

    @property
    def starts(self) -> int:
        """What was not skipped."""
        return sum(self.states.values()) - self.states.get(ExecutionState.SKIPPED, 0)


def counted(
    conn: Connection, since: datetime, until: datetime, width: Width, service: str | None = None
) -> dict[datetime, Counted]:
    """Of what was due from `since` until before `until`, by the beginning of the hour or slot.

    It must be the first look of its transaction. `since` is the beginning of a slot, and so is `until` unless
    it lies among what is not tallied yet. A service's jobs are counted from their own executions.
    """
    dialects.of(conn).steady(conn)  # what moves into the tallies meanwhile is counted once
    due = (executions.c.scheduled_for >= since, executions.c.scheduled_for < until)
    found: dict[datetime, Counted] = {}
    if service is not None:
        own = conn.execute(select(jobs.c.id).where(owned_by(conn, service))).scalars().all()
        _take(found, _sums_of(conn, own, executions.c.job_id, due, width))
        return found
    edge = meta.get(conn, TALLIED)
    if edge is not None:
        _take_tallies(conn, found, since, until, width)
        late = conn.execute(select(stragglers.c.execution_id)).scalars().all()
        _take(found, _sums_of(conn, late, executions.c.id, (*due, executions.c.id < edge), width))
    rest = max(edge or "", first_id(since - _EARLY))
    _take(found, conn.execute(sums(conn, width).where(executions.c.id >= rest, *due)).all())
    return found


def sums(conn: Connection, width: Width = Width.SLOT) -> Select[Any]:
    """Executions by stretch and state: how many instants, and the milliseconds that their runs took."""
    stretch = _stretch(executions.c.scheduled_for, width)
    skipped = executions.c.state == ExecutionState.SKIPPED.value
    many = case((skipped & (executions.c.skipped_count > 1), executions.c.skipped_count), else_=1)
    seconds = dialects.of(conn).seconds_between(executions.c.started_at, executions.c.completed_at)
    took = case((~skipped & (seconds > 0), cast_to(func.round(seconds * 1000), BigInteger)), else_=0)
    query = select(stretch, executions.c.state, func.sum(many).label("instants"), func.sum(took).label("ms"))
    return query.group_by(stretch, executions.c.state)


def slot_of(text: str) -> datetime:
    """The instant at which a stretch begins, told by the text of its width."""
    return datetime.fromisoformat(text + _ZERO[len(text) :]).replace(tzinfo=UTC)


def _sums_of(
    conn: Connection,
    ids: Iterable[str],
    column: ColumnElement[Any],
    also: tuple[ColumnElement[bool], ...],
    width: Width,
) -> Iterable[Any]:
    """Of the executions that the column names, each found by its index."""
    ids = list(ids)
    if not ids:
        return ()
    return conn.execute(sums(conn, width).where(dialects.of(conn).among(column, ids), *also)).all()


def _take(found: dict[datetime, Counted], rows: Iterable[Any]) -> None:
    for text, state, instants, spent in rows:
        _add(found, text, {ExecutionState(state): instants}, spent)


def _take_tallies(
    conn: Connection, found: dict[datetime, Counted], since: datetime, until: datetime, width: Width
) -> None:
    stretch = _stretch(tallies.c.slot, width)
    columns = [func.sum(column) for column in (*_ENDS.values(), tallies.c.busy_ms)]
    query = select(stretch, *columns).where(tallies.c.slot >= since, tallies.c.slot < until)
    for text, *ends, spent in conn.execute(query.group_by(stretch)):
        _add(found, text, dict(zip(_ENDS, ends, strict=True)), spent)


def _add(found: dict[datetime, Counted], text: str, ends: Mapping[ExecutionState, Any], spent: Any) -> None:
    if not any(ends.values()):
        return  # all of it was taken back
    one = found.setdefault(slot_of(text), Counted())
    one.busy += timedelta(milliseconds=int(spent))
    for state, instants in ends.items():
        if instants:
            one.states[state] = one.states.get(state, 0) + int(instants)


def _stretch(column: ColumnElement[Any], width: Width) -> ColumnElement[str]:
    return func.substr(cast_to(column, Text), 1, int(width)).label("stretch")
