"""Keeps the tallies: each execution is counted once, when it is settled; what changes later is taken back.

What happens to the tallies happens in the transaction that causes it, under one row that the counting owns
and everybody else keeps: so neither a crash nor a late end makes a wrong number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, delete, func, not_, select, update

from noonday.domain.execution import OPEN
from noonday.ids import first_id
from noonday.store import dialects, meta
from noonday.store.front_tables import stragglers, tallies
from noonday.store.tables import executions
from noonday.store.tables import meta as meta_table
from noonday.store.tallies import TALLIED, slot_of, sums

__all__ = ["LAG", "advance", "fold", "reopen", "restart", "take_back"]

LAG: Final = timedelta(minutes=5)  # longer than any transaction: later, nobody makes an id of then
MOST: Final = 10_000  # stragglers; while there are more, nothing further is tallied
_START: Final = first_id(datetime.fromtimestamp(0, UTC))
_SUMS: Final = ("completed", "failed", "cancelled", "skipped", "busy_ms")


def advance(conn: Connection, now: datetime, limit: int) -> bool:
    """Tally the next executions in order of their making, at most `limit`; are there more?

    Those that are not settled are noted as stragglers.
    """
    edge = conn.execute(dialects.of(conn).owned(_edge(), meta_table)).scalar()
    if edge is None:
        meta.put(conn, TALLIED, _START)
        return True  # in a transaction of its own: from then on there is a row to keep
    if edge > first_id(now):  # the clock was set back: ids are made that were passed already
        return restart(conn)
    end, late = first_id(now - LAG), select(func.count()).select_from(stragglers)
    if edge >= end or conn.execute(late).scalar_one() >= MOST:
        return False
    ahead = (executions.c.id >= edge, executions.c.id < end)
    query = select(executions.c.id).where(*ahead).order_by(executions.c.id).offset(limit).limit(1)
    after = conn.execute(query).scalar()
    batch = (executions.c.id >= edge, executions.c.id < (after or end))
    _add(conn, conn.execute(sums(conn).where(*batch, _settled(now))).all())
    _note(conn, conn.execute(select(executions.c.id).where(*batch, not_(_settled(now)))).scalars().all())
    conn.execute(_move(after or end))
    return after is not None


def fold(conn: Connection, now: datetime, limit: int) -> bool:
    """Tally stragglers that have settled since, at most `limit`, and forget what is empty; are there more?"""
    dialect = dialects.of(conn)
    conn.execute(dialect.owned(_edge(), meta_table))
    noted = set(conn.execute(select(stragglers.c.execution_id)).scalars())
    query = select(executions.c.id, _settled(now)).where(dialect.among(executions.c.id, noted))
    found = {one: bool(settled) for one, settled in conn.execute(query)} if noted else {}
    done = [one for one in sorted(noted) if found.get(one, True)]  # what is gone needs no counting either
    batch = done[:limit]
    if batch:
        _add(conn, conn.execute(sums(conn).where(dialect.among(executions.c.id, batch))).all())
        conn.execute(delete(stragglers).where(dialect.among(stragglers.c.execution_id, batch)))
    conn.execute(delete(tallies).where(*(tallies.c[name] == 0 for name in _SUMS)))
    return len(done) > limit


def take_back(conn: Connection, ids: Collection[str]) -> list[str]:
    """These executions will be changed or deleted: what was tallied of them is no longer.

    Returns those that advancing has passed.
    """
    dialect = dialects.of(conn)
    edge = conn.execute(dialect.kept(_edge(), meta_table)).scalar()
    passed = [] if edge is None else [one for one in ids if one < edge]
    if not passed:
        return []
    late = select(stragglers.c.execution_id).where(stragglers.c.execution_id == executions.c.id).exists()
    mine = (dialect.among(executions.c.id, passed), not_(late))
    _add(conn, conn.execute(sums(conn).where(*mine)).all(), sign=-1)
    return passed


def reopen(conn: Connection, ids: Collection[str]) -> None:
    """These executions have ended and will be open again."""
    _note(conn, take_back(conn, ids))


def restart(conn: Connection) -> bool:
    """Forget all of it, to be counted anew from the beginning; True, for there is more to do."""
    conn.execute(dialects.of(conn).owned(_edge(), meta_table))
    conn.execute(delete(tallies))
    conn.execute(delete(stragglers))
    conn.execute(_move(_START))
    return True


def _settled(now: datetime) -> ColumnElement[bool]:
    """Ended, and all that it stands for is past: nothing but deleting or reviving changes it any more."""
    through = func.coalesce(executions.c.through_at, executions.c.scheduled_for)
    return and_(executions.c.state.not_in([state.value for state in OPEN]), through < now - LAG)


def _edge() -> Select[Any]:
    return select(meta_table.c.value).where(meta_table.c.key == TALLIED)


def _move(edge: str) -> Any:
    return update(meta_table).where(meta_table.c.key == TALLIED).values(value=edge)


def _note(conn: Connection, ids: Collection[str]) -> None:
    rows = [{"execution_id": one} for one in ids]
    dialects.of(conn).insert(conn, stragglers, rows, ("execution_id",))


def _add(conn: Connection, rows: Iterable[Any], sign: int = 1) -> None:
    slots: dict[str, dict[str, int]] = {}
    for text, state, instants, spent in rows:
        slot = slots.setdefault(text, dict.fromkeys(_SUMS, 0))
        slot[state] += sign * int(instants)
        slot["busy_ms"] += sign * int(spent)
    if not slots:
        return
    zeros = dict.fromkeys(_SUMS, 0)
    dialects.of(conn).insert(conn, tallies, [{"slot": slot_of(text), **zeros} for text in slots], ("slot",))
    more = {name: tallies.c[name] + bindparam(f"more_{name}") for name in _SUMS}
    change = update(tallies).where(tallies.c.slot == bindparam("at")).values(more)
    conn.execute(
        change,
        [
            {"at": slot_of(text)} | {f"more_{name}": value for name, value in slot.items()}
            for text, slot in sorted(slots.items())
        ],
    )
