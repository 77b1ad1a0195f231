"""What a change would do: all of it happens in a transaction, and is taken back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection

from noonday.domain.job import Job
from noonday.store import jobs
from noonday.store.database import Database

__all__ = ["Rehearsal", "rehearse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """None before = it would be new; None after = it would be gone."""

    before: Job | None
    after: Job | None


class _Curtain(Exception):
    """Ends a transaction so that nothing of it is kept."""

    def __init__(self, seen: Rehearsal) -> None:
        self.seen = seen


async def rehearse(db: Database, act: Callable[[Connection], Job], id_or_name: str | None) -> Rehearsal:
    """Raises what the act itself would raise."""

    def work(conn: Connection) -> None:
        before = None if id_or_name is None else jobs.resolve(conn, id_or_name)
        made = act(conn)
        raise _Curtain(Rehearsal(before=before, after=jobs.get(conn, made.id)))

    try:
        await db.write(work)
    except _Curtain as end:
        return end.seen
    raise AssertionError("unreachable")
