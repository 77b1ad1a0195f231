"""The audit trail: who changed what, with the state before and after, in the transaction of the change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from noonday.ids import new_id
from noonday.store.pages import Page
from noonday.store.tables import audit


@dataclass(frozen=True, slots=True)
class AuditEntry:
    at: datetime
    actor: str
    action: str
    kind: str  # of the subject: job, execution, …
    subject_id: str
    before: Mapping[str, Any] | None = None
    after: Mapping[str, Any] | None = None
    revision: int | None = None  # that the change made


def record(conn: Connection, entry: AuditEntry) -> None:
    values = {
        "id": new_id(entry.at),
        "at": entry.at,
        "actor": entry.actor,
        "action": entry.action,
        "kind": entry.kind,
        "subject_id": entry.subject_id,
        "before": None if entry.before is None else dict(entry.before),
        "after": None if entry.after is None else dict(entry.after),
        "revision": entry.revision,
    }
    conn.execute(insert(audit).values(values))


def page(
    conn: Connection, subject_id: str | None = None, limit: int = 50, offset: int = 0
) -> Page[AuditEntry]:
    """Newest first."""
    query = select(audit)
    total = select(func.count()).select_from(audit)
    if subject_id is not None:
        query = query.where(audit.c.subject_id == subject_id)
        total = total.where(audit.c.subject_id == subject_id)
    rows = conn.execute(query.order_by(audit.c.id.desc()).limit(limit).offset(offset)).mappings()
    return Page(
        items=tuple(AuditEntry(**{k: v for k, v in row.items() if k != "id"}) for row in rows),
        total=conn.execute(total).scalar_one(),
        limit=limit,
        offset=offset,
    )
