"""Who leads: a term that every election raises, its holder, and a lease, the twin of the key in Redis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Integer, RowMapping, Select, Text, Update, bindparam, select, update

from noonday.domain.errors import NotLeader
from noonday.store import dialects, events
from noonday.store.columns import Instant
from noonday.store.dialects import Answers
from noonday.store.events import News
from noonday.store.notices import INSTANCES, tell
from noonday.store.prepared import prepared
from noonday.store.tables import leadership


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Who wants to lead, and for how long at a time."""

    name: str  # of the leadership, not of the candidate
    holder: str
    host: str
    pid: int
    ttl: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Incumbent:
    """Whoever was elected last, whether or not the lease still lives; nobody after a resignation."""

    term: int
    holder: str | None
    host: str
    pid: int
    left: timedelta


def nobody_died(incumbent: Incumbent) -> bool:
    return False


def look(conn: Connection, name: str, now: datetime) -> Incumbent | None:
    row = _row(conn, key=name).mappings().first()
    return None if row is None else _incumbent(row, dialects.of(conn).now(conn, now))


def take_term(
    conn: Connection,
    me: Candidate,
    now: datetime,
    *,
    unconditional: bool = False,
    died: Callable[[Incumbent], bool] = nobody_died,
) -> int | None:
    """The next term, or None while another's lease lives. Waits for a planning transaction in progress.

    `unconditional` is for the holder of the key in Redis, where that was decided.
    """
    dialect = dialects.of(conn)
    found = look(conn, me.name, now)
    if found is None:
        dialect.insert(conn, leadership, [{"name": me.name}], ("name",))
    elif not unconditional and not _free(found, me, died):
        return None  # seen without a lock, so that campaigns are in nobody's way
    dialect.impatient(conn, me.ttl)
    row = _own_row(conn, key=me.name).mappings().one()
    now = dialect.now(conn, now)
    found = _incumbent(row, now)
    if not unconditional and not _free(found, me, died):
        return None
    values = {
        "term": found.term + 1,
        "holder": me.holder,
        "host": me.host,
        "pid": me.pid,
        "elected_at": now,
        "expires_at": now + me.ttl,
    }
    conn.execute(update(leadership).where(leadership.c.name == me.name).values(values))
    if found.holder not in {None, me.holder}:
        tell(conn, INSTANCES)  # the one that is replaced need not wait for its next renewal to know
    told = {"instance": me.holder, "term": found.term + 1}
    events.append(conn, [News(at=now, kind="leader.elected", payload=told)])
    return found.term + 1


def extend(conn: Connection, me: Candidate, term: int, now: datetime) -> bool:
    """Is the term still ours? Its lease lives on, even if it had run out: nobody was elected meanwhile."""
    dialect = dialects.of(conn)
    dialect.impatient(conn, me.ttl)
    until = dialect.now(conn, now) + me.ttl
    return _extend(conn, key=me.name, by=me.holder, its_term=term, until=until).rowcount == 1


def give_up(conn: Connection, name: str, holder: str, term: int) -> None:
    """The others hear of it and campaign at once."""
    if _give_up(conn, key=name, by=holder, its_term=term).rowcount:
        tell(conn, INSTANCES)


def check(conn: Connection, name: str, holder: str, term: int, patience: timedelta) -> None:
    """Raises NotLeader unless the term is ours, which it then stays until this transaction ends.

    The next election waits for it: at most for `patience`, should our process stand still meanwhile. Our own
    renewals do not wait: a long planning transaction must not cost the leader its term.
    """
    dialect = dialects.of(conn)
    dialect.impatient(conn, patience)
    row = _keep_row(conn, key=name).first()
    if row is None or tuple(row) != (term, holder):
        raise NotLeader


_NAMED: Final = leadership.c.name == bindparam("key", type_=Text)
_OURS: Final = (
    update(leadership)
    .where(_NAMED, leadership.c.holder == bindparam("by", type_=Text))
    .where(leadership.c.term == bindparam("its_term", type_=Integer))
)


@prepared
def _row(_: Answers) -> Select[Any]:
    return select(leadership).where(_NAMED)


@prepared
def _own_row(dialect: Answers) -> Select[Any]:
    return dialect.owned(select(leadership).where(_NAMED), leadership)


@prepared
def _keep_row(dialect: Answers) -> Select[Any]:
    query = select(leadership.c.term, leadership.c.holder).where(_NAMED)
    return dialect.kept(query, leadership)


@prepared
def _extend(_: Answers) -> Update:
    return _OURS.values(expires_at=bindparam("until", type_=Instant))


@prepared
def _give_up(_: Answers) -> Update:
    return _OURS.values(holder=None, expires_at=None)


def _incumbent(row: RowMapping, now: datetime) -> Incumbent:
    expires_at = row["expires_at"]
    return Incumbent(
        term=row["term"],
        holder=row["holder"],
        host=row["host"],
        pid=row["pid"],
        left=timedelta() if expires_at is None else expires_at - now,
    )


def _free(found: Incumbent, me: Candidate, died: Callable[[Incumbent], bool]) -> bool:
    return found.holder in {None, me.holder} or found.left <= timedelta() or died(found)
