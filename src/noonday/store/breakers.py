"""Circuit breakers as all instances share them: what was heard of a domain, its one probe, who waits."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection, Select, delete, func, or_, select, update

from noonday.domain import breaker as rules
from noonday.domain.breaker import CLOSED, Breaker, BreakerPolicy, BreakerState, Heard
from noonday.domain.execution import WaitReason
from noonday.domain.searching import Term
from noonday.store import dialects, events, search_sources
from noonday.store.dialects import Answers
from noonday.store.events import News
from noonday.store.jsontext import clean_text
from noonday.store.notices import BREAKERS, WORK, tell
from noonday.store.pages import Page
from noonday.store.prepared import prepared
from noonday.store.search_sql import conditions
from noonday.store.tables import PENDING, breakers, executions

MOST: Final = 10_000  # domains that are kept; a newer one then has no breaker
KEEP_CLEAN: Final = timedelta(days=7)  # how long the trips of a domain that is well are remembered
_ERROR_CHARS: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRow:
    domain: str
    breaker: Breaker
    trips: int = 0  # how often it opened
    last_error: str | None = None
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Change:
    before: BreakerRow
    after: BreakerRow

    @property
    def moved(self) -> bool:
        return self.before.breaker.state is not self.after.breaker.state

    @property
    def tripped(self) -> bool:
        return self.after.trips > self.before.trips


def not_clean(conn: Connection) -> dict[str, Breaker]:
    """Those that hold back calls, or will after some more failures."""
    return {row["domain"]: _read(row).breaker for row in _not_clean(conn).mappings()}


@prepared
def _not_clean(_: Answers) -> Select[Any]:
    dirty = or_(breakers.c.state != BreakerState.CLOSED.value, breakers.c.failures > 0)
    return select(breakers).where(dirty).limit(MOST)


def get(conn: Connection, domain: str) -> BreakerRow | None:
    row = conn.execute(select(breakers).where(breakers.c.domain == domain)).mappings().first()
    return None if row is None else _read(row)


def page(
    conn: Connection,
    state: BreakerState | None = None,
    limit: int = 50,
    offset: int = 0,
    terms: tuple[Term, ...] = (),
) -> Page[BreakerRow]:
    """By domain, those that hold back calls first."""
    asked = conditions(conn, terms, search_sources.BREAKERS)
    query, total = select(breakers).where(*asked), select(func.count()).select_from(breakers).where(*asked)
    if state is not None:
        query, total = (asked.where(breakers.c.state == state.value) for asked in (query, total))
    query = query.order_by(breakers.c.state == BreakerState.CLOSED.value, breakers.c.domain)
    rows = conn.execute(query.limit(limit).offset(offset)).mappings()
    count = conn.execute(total).scalar_one()
    return Page(items=tuple(map(_read, rows)), total=count, limit=limit, offset=offset)


def parked(conn: Connection) -> int:
    """How many executions wait for a breaker."""
    waiting = select(func.count()).select_from(executions)
    found = conn.execute(waiting.where(PENDING, executions.c.wait_reason == WaitReason.BREAKER.value))
    return int(found.scalar_one())


def hear(
    conn: Connection, heard: Mapping[str, Heard], policy: BreakerPolicy, now: datetime
) -> dict[str, Change]:
    """Everything that was heard, in one step; what changed, by domain. Who waited for one that closed goes
    on at once."""
    rows = _locked(conn, heard)
    new = sorted(domain for domain in heard.keys() - rows.keys() if heard[domain].failures)
    rows |= _added(conn, new, now) if new else {}
    changes: dict[str, Change] = {}
    for domain, row in rows.items():
        after = rules.hear(row.breaker, policy, heard[domain], now)
        if after != row.breaker:
            changes[domain] = Change(row, _next(row, after, heard[domain].error, now))
    _write(conn, changes.values(), now)
    return changes


def probe(
    conn: Connection, domain: str, policy: BreakerPolicy, now: datetime
) -> tuple[Breaker, bool, datetime | None]:
    """As `domain.breaker.allow`, of the shared breaker: one of all who ask gets the probe."""
    row = _locked(conn, [domain]).get(domain)
    if row is None:
        return CLOSED, True, None
    after, allowed, until = rules.allow(row.breaker, policy, now)
    if after != row.breaker:
        _write(conn, [Change(row, replace(row, breaker=after, updated_at=now))], now)
    return after, allowed, until


def reset(conn: Connection, domain: str, now: datetime) -> Change | None:
    """Closed, whatever was heard; None if there is no such breaker."""
    row = _locked(conn, [domain]).get(domain)
    if row is None:
        return None
    change = Change(row, replace(row, breaker=CLOSED, updated_at=now))
    _write(conn, [change], now)
    tell(conn, BREAKERS)
    return change


def holding(conn: Connection, domains: Collection[str]) -> set[str]:
    """Those that are not closed and stay so until this transaction ends.

    One that is being changed right now is left out: whoever would have waited for it asks again.
    """
    if not domains:
        return set()
    dialect = dialects.of(conn)
    query = select(breakers.c.domain).where(
        dialect.among(breakers.c.domain, domains), breakers.c.state != BreakerState.CLOSED.value
    )
    return set(conn.execute(dialect.shared(query, breakers)).scalars())


def _release(conn: Connection, domain: str, now: datetime) -> None:
    """All who wait for this breaker are claimable now; what somebody claims at this moment is left out."""
    waiting = (
        select(executions.c.id)
        .where(PENDING, executions.c.wait_reason == WaitReason.BREAKER.value)
        .where(executions.c.available_at > now)
        .where(executions.c.detail.startswith(rules.whose(domain), autoescape=True))
    )
    chosen = dialects.of(conn).skip_locked(waiting, executions)
    woken = update(executions).where(executions.c.id.in_(chosen)).values(available_at=now, enqueued_at=None)
    if conn.execute(woken).rowcount:
        tell(conn, WORK)


def _locked(conn: Connection, domains: Collection[str]) -> dict[str, BreakerRow]:
    """Always in the same order: nobody waits in a circle."""
    dialect = dialects.of(conn)
    query = (
        select(breakers).where(dialect.among(breakers.c.domain, list(domains))).order_by(breakers.c.domain)
    )
    return {row["domain"]: _read(row) for row in conn.execute(dialect.locked(query, breakers)).mappings()}


def _added(conn: Connection, domains: list[str], now: datetime) -> dict[str, BreakerRow]:
    """Rows for domains that fail for the first time, as far as there is room."""
    closed = (breakers.c.state == BreakerState.CLOSED.value) & (breakers.c.failures == 0)
    conn.execute(delete(breakers).where(closed, breakers.c.updated_at < now - KEEP_CLEAN))
    room = max(0, MOST - conn.execute(select(func.count()).select_from(breakers)).scalar_one())
    made = [{"domain": domain, "updated_at": now} for domain in domains[:room]]
    dialects.of(conn).insert(conn, breakers, made, ("domain",))
    return _locked(conn, domains[:room]) if made else {}


def _next(row: BreakerRow, after: Breaker, error: str | None, now: datetime) -> BreakerRow:
    tripped = row.breaker.state is BreakerState.CLOSED and after.state is BreakerState.OPEN
    last_error = row.last_error if error is None else clean_text(error)[:_ERROR_CHARS]
    return BreakerRow(
        domain=row.domain,
        breaker=after,
        trips=row.trips + tripped,
        last_error=last_error,
        updated_at=now,
    )


def _write(conn: Connection, changes: Collection[Change], now: datetime) -> None:
    dialects.of(conn).update(conn, breakers, [_values(change.after) for change in changes], key="domain")
    for change in changes:
        if change.moved:
            tell(conn, BREAKERS)
            events.append(conn, [_news(change, now)])
        if change.moved and change.after.breaker.state is BreakerState.CLOSED:
            _release(conn, change.after.domain, now)


def _news(change: Change, now: datetime) -> News:
    row = change.after
    told = {"breaker": row.domain, "failures": row.breaker.failures, "last_error": row.last_error}
    words = {BreakerState.OPEN: "opened", BreakerState.CLOSED: "closed", BreakerState.HALF_OPEN: "probing"}
    return News(at=now, kind=f"breaker.{words[row.breaker.state]}", payload=told)


def _values(row: BreakerRow) -> dict[str, Any]:
    return {
        "domain": row.domain,
        "state": row.breaker.state.value,
        "failures": row.breaker.failures,
        "opened_at": row.breaker.opened_at,
        "probe_until": row.breaker.probe_until,
        "trips": row.trips,
        "last_error": row.last_error,
        "updated_at": row.updated_at,
    }


def _read(row: Mapping[str, Any] | Any) -> BreakerRow:
    """A row that somebody broke by hand counts as closed."""
    opened_at, probe_until = row["opened_at"], row["probe_until"]
    try:
        state = BreakerState(row["state"])
    except ValueError:
        state = BreakerState.CLOSED
    if opened_at is None or (state is BreakerState.HALF_OPEN and probe_until is None):
        state = BreakerState.CLOSED
    held = state is not BreakerState.CLOSED
    breaker = Breaker(
        state=state,
        failures=row["failures"],
        opened_at=opened_at if held else None,
        probe_until=probe_until if state is BreakerState.HALF_OPEN else None,
    )
    return BreakerRow(
        domain=row["domain"],
        breaker=breaker,
        trips=row["trips"],
        last_error=row["last_error"],
        updated_at=row["updated_at"],
    )
