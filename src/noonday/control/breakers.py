"""Circuit breakers as people handle them: who is held back, since when and why; and let it through again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection

from noonday.clock import Clock
from noonday.control.jobs import NOBODY
from noonday.domain.breaker import BreakerPolicy, BreakerState, allow
from noonday.domain.errors import NotFound
from noonday.domain.searching import Term
from noonday.store import audit, breakers
from noonday.store.audit import AuditEntry
from noonday.store.breakers import BreakerRow
from noonday.store.database import Database
from noonday.store.pages import Page

__all__ = ["Breakers", "Seen"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A breaker, and when the next call may go out: in the past if one may now, None while it is closed."""

    row: BreakerRow
    retry_at: datetime | None


class Breakers:
    def __init__(self, db: Database, clock: Clock, policy: BreakerPolicy | None = None) -> None:
        self._db = db
        self._clock = clock
        self._policy = policy or BreakerPolicy()

    async def page(
        self,
        state: BreakerState | None = None,
        *,
        limit: int = 50,
        offset: int = 0,
        terms: tuple[Term, ...] = (),
    ) -> tuple[Page[Seen], int]:
        """Those that hold back calls first; and how many executions wait for any of them."""

        def look(conn: Connection) -> tuple[Page[Seen], int]:
            found = breakers.page(conn, state, limit, offset, terms)
            items = tuple(map(self._seen, found.items))
            return Page(items=items, total=found.total, limit=limit, offset=offset), breakers.parked(conn)

        return await self._db.read(look)

    async def get(self, domain: str) -> Seen:
        row = await self._db.read(lambda conn: breakers.get(conn, _plain(domain)))
        if row is None:
            raise _unknown(domain)
        return self._seen(row)

    async def reset(self, domain: str, by: str | None = None) -> Seen:
        """Closed, as if all had been well: who waited for it goes on at once."""

        def work(conn: Connection) -> BreakerRow:
            now = self._clock.now()
            change = breakers.reset(conn, _plain(domain), now)
            if change is None:
                raise _unknown(domain)
            entry = AuditEntry(
                at=now,
                actor=by or NOBODY,
                action="reset",
                kind="breaker",
                subject_id=change.after.domain,
                before=_told(change.before),
                after=_told(change.after),
            )
            audit.record(conn, entry)
            return change.after

        return self._seen(await self._db.write(work))

    def _seen(self, row: BreakerRow) -> Seen:
        now = self._clock.now()
        _, _, until = allow(row.breaker, self._policy, now)
        closed = row.breaker.state is BreakerState.CLOSED
        return Seen(row=row, retry_at=None if closed else until or now)


def _plain(domain: str) -> str:
    return domain.strip().lower()


def _unknown(domain: str) -> NotFound:
    return NotFound(f"there is no circuit breaker of {domain!r}: no call to it failed")


def _told(row: BreakerRow) -> dict[str, object]:
    return {"state": row.breaker.state.value, "failures": row.breaker.failures}
