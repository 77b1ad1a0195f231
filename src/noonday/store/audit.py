"""The audit trail: who changed what, with the state before and after, in the transaction of the change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, Row, func, select

from noonday.domain.searching import Term
from noonday.domain.topics import kind_of_change
from noonday.ids import new_id, new_ids
from noonday.store import events, search_sources
from noonday.store.alike import insert_alike
from noonday.store.events import News
from noonday.store.keyset import Order, mark_of, sorted_by
from noonday.store.pages import Mark, Page
from noonday.store.search_sql import conditions
from noonday.store.tables import audit

_NEWEST_FIRST: Final = Order(name="-id", column=audit.c.id, id=audit.c.id)


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
    id: str = field(default="", compare=False)  # given when it is recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFilter:
    """All that is given must hold."""

    actor: str | None = None
    action: str | None = None
    kind: str | None = None
    subject_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    terms: tuple[Term, ...] = ()


def record(conn: Connection, entry: AuditEntry) -> None:
    """And tell of it as an event, with the names of what changed but no values."""
    record_many(conn, [entry])


def record_many(conn: Connection, entries: Sequence[AuditEntry]) -> None:
    ids = _ids([entry.at for entry in entries])
    insert_alike(conn, audit, [_values(*each) for each in zip(ids, entries, strict=True)])
    kinds = [(entry, kind_of_change(entry.kind, entry.action)) for entry in entries]
    events.append(conn, [_news(entry, kind) for entry, kind in kinds if kind is not None])


def _ids(moments: Sequence[datetime]) -> list[str]:
    """In the order of the entries, as far as they are of one moment."""
    if len(set(moments)) == 1:
        return new_ids(moments[0], len(moments))
    return [new_id(at) for at in moments]


def _values(entry_id: str, entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry_id,
        "at": entry.at,
        "actor": entry.actor,
        "action": entry.action,
        "kind": entry.kind,
        "subject_id": entry.subject_id,
        "before": None if entry.before is None else dict(entry.before),
        "after": None if entry.after is None else dict(entry.after),
        "revision": entry.revision,
    }


def _news(entry: AuditEntry, kind: str) -> News:
    before, after = entry.before or {}, entry.after or {}
    payload = _deed(entry.action, entry.actor, entry.revision)
    if entry.before is not None and entry.after is not None:
        payload = payload | {"changed": sorted({*before, *after} - {"revision"})}
    if entry.kind == "job":
        if entry.after is None:
            payload = payload | _farewell(before)
        started = after.get("execution_id")
        return News(
            at=entry.at,
            kind=kind,
            job_id=entry.subject_id,
            execution_id=started,
            payload=payload,
        )
    if entry.kind == "execution":
        ended = after.get("state") == "cancelled"
        return News(
            at=entry.at,
            kind="execution.ended" if ended else "execution.cancelling",
            job_id=after.get("job_id"),
            execution_id=entry.subject_id,
            payload={"by": entry.actor, "status": after.get("state")},
        )
    return News(at=entry.at, kind=kind, payload=payload | {entry.kind: entry.subject_id})


@lru_cache(maxsize=64)
def _deed(action: str, by: str, revision: int | None) -> dict[str, Any]:
    """The very same one for many entries, so that its text is made once; nobody changes it."""
    told = {"action": action, "by": by}
    return told if revision is None else told | {"revision": revision}


def _farewell(job: Mapping[str, Any]) -> dict[str, Any]:
    """What nobody can look up once the job is gone."""
    told = {"job_name": job.get("name"), "service": (job.get("target") or {}).get("service")}
    return {name: value for name, value in told.items() if value is not None}


def page(
    conn: Connection, subject_id: str | None = None, limit: int = 50, offset: int = 0
) -> Page[AuditEntry]:
    """Newest first."""
    return find(conn, AuditFilter(subject_id=subject_id), limit, offset)


def find(
    conn: Connection, wanted: AuditFilter, limit: int = 50, offset: int = 0, after: Mark | None = None
) -> Page[AuditEntry]:
    """Newest first; from behind the mark on, where one is given."""
    held = _held(conn, wanted)
    query = sorted_by(conn, select(audit).where(*held), _NEWEST_FIRST, after)
    rows = conn.execute(query.limit(limit + 1).offset(offset)).all()
    return Page(
        items=tuple(map(_read, rows[:limit])),
        total=conn.execute(select(func.count()).select_from(audit).where(*held)).scalar_one(),
        limit=limit,
        offset=offset,
        next=mark_of(rows, limit, _NEWEST_FIRST),
    )


def changes_since(conn: Connection, job_id: str, revision: int) -> list[AuditEntry]:
    """What made the job's later revisions, the newest first."""
    query = select(audit).where(audit.c.subject_id == job_id, audit.c.kind == "job")
    later = query.where(audit.c.revision > revision, audit.c.before.is_not(None))
    return [_read(row) for row in conn.execute(later.order_by(audit.c.revision.desc(), audit.c.id.desc()))]


def change_to(conn: Connection, job_id: str, revision: int) -> AuditEntry | None:
    """What made this revision; None if that is not known."""
    query = select(audit).where(audit.c.subject_id == job_id, audit.c.kind == "job")
    row = conn.execute(query.where(audit.c.revision == revision).order_by(audit.c.id)).first()
    return None if row is None else _read(row)


def _held(conn: Connection, wanted: AuditFilter) -> list[ColumnElement[bool]]:
    names = ("actor", "action", "kind", "subject_id")
    held = [audit.c[name] == getattr(wanted, name) for name in names if getattr(wanted, name) is not None]
    if wanted.since is not None:
        held.append(audit.c.at >= wanted.since)
    if wanted.until is not None:
        held.append(audit.c.at < wanted.until)
    return held + conditions(conn, wanted.terms, search_sources.AUDIT)


def _read(row: Row[Any]) -> AuditEntry:
    return AuditEntry(**{one.name: row._mapping[one.name] for one in fields(AuditEntry)})
