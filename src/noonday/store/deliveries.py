"""Webhook deliveries that were taken, by the sender's own id: the same one again starts nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, delete, func, select, update

from noonday.store import dialects
from noonday.store.front_tables import deliveries
from noonday.store.jsontext import Unreadable
from noonday.store.pages import Page

Started = Mapping[str, Any]  # {"job_id": …, "job_name": …, "execution_id": …, "status": …}


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    id: str
    path: str
    received_at: datetime
    started: tuple[Started, ...] = ()


def take(conn: Connection, delivery: Delivery) -> bool:
    """False if the id is known already; whoever asks at the same moment waits for the first to commit."""
    row = {"id": delivery.id, "path": delivery.path, "received_at": delivery.received_at}
    return dialects.of(conn).insert(conn, deliveries, [row], ["id"]).count() > 0


def started(conn: Connection, delivery_id: str, entries: Sequence[Started]) -> None:
    """What a delivery that was just taken has started."""
    kept = [dict(entry) for entry in entries]
    conn.execute(update(deliveries).where(deliveries.c.id == delivery_id).values(started=kept))


def get(conn: Connection, delivery_id: str) -> Delivery | None:
    row = conn.execute(select(deliveries).where(deliveries.c.id == delivery_id)).mappings().first()
    return None if row is None else _read(row)


def page(conn: Connection, limit: int = 50, offset: int = 0) -> Page[Delivery]:
    """Newest first."""
    newest = select(deliveries).order_by(deliveries.c.received_at.desc(), deliveries.c.id)
    rows = conn.execute(newest.limit(limit).offset(offset)).mappings()
    return Page(
        items=tuple(_read(row) for row in rows),
        total=conn.execute(select(func.count()).select_from(deliveries)).scalar_one(),
        limit=limit,
        offset=offset,
    )


def between(conn: Connection, first: datetime, last: datetime, limit: int = 500) -> list[Delivery]:
    """Those received from then to then."""
    query = select(deliveries).where(deliveries.c.received_at.between(first, last))
    rows = conn.execute(query.order_by(deliveries.c.received_at).limit(limit)).mappings()
    return [_read(row) for row in rows]


def prune(conn: Connection, before: datetime, limit: int = 500) -> int:
    """Forget at most `limit` deliveries received before this instant; returns how many."""
    old = select(deliveries.c.id).where(deliveries.c.received_at < before)
    ids = conn.execute(old.order_by(deliveries.c.received_at).limit(limit)).scalars().all()
    if ids:
        conn.execute(delete(deliveries).where(dialects.of(conn).among(deliveries.c.id, ids)))
    return len(ids)


def _read(row: RowMapping) -> Delivery:
    entries = row["started"]
    return Delivery(
        id=row["id"],
        path=row["path"],
        received_at=row["received_at"],
        started=() if isinstance(entries, Unreadable) else tuple(entries or ()),
    )
