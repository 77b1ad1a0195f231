"""How much waits: due executions in each lane, and how long the outbox has been waiting. For the metrics."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import Connection, func, select

from noonday.domain.job import Lane
from noonday.store.tables import CLAIMABLE, executions, outbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    depths: dict[Lane, int]  # claimable and due, on either road
    outbox_lag: timedelta = timedelta()  # how long the oldest letter could have been delivered


def backlog(conn: Connection, now: datetime) -> Backlog:
    due = select(executions.c.lane, func.count()).where(CLAIMABLE, executions.c.available_at <= now)
    found = {Lane(lane): int(n) for lane, n in conn.execute(due.group_by(executions.c.lane))}
    oldest: datetime | None = conn.execute(select(func.min(outbox.c.available_at))).scalar()
    return Backlog(
        depths={lane: found.get(lane, 0) for lane in Lane},
        outbox_lag=timedelta() if oldest is None else max(now - oldest, timedelta()),
    )
