"""Which jobs wait for a webhook or a channel, the disabled ones included: as people look at them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Row, TextClause, func, select

from noonday.domain.job import JobState
from noonday.domain.webhooks import Patterns
from noonday.store.owners import owned_by
from noonday.store.pages import Page
from noonday.store.tables import HAS_CHANNEL, HAS_WEBHOOK, jobs
from noonday.store.webhooks import is_pattern


class Kind(StrEnum):
    WEBHOOK = "webhook"
    CHANNEL = "channel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """`listening`: would a call or a message do anything? While the job is paused it is skipped."""

    job_id: str
    job_name: str
    pattern: str  # of paths, or the channel
    listening: bool
    paused: bool


_COLUMNS: Final[dict[Kind, tuple[Column[Any], TextClause]]] = {
    Kind.WEBHOOK: (jobs.c.trigger_webhook, HAS_WEBHOOK),
    Kind.CHANNEL: (jobs.c.trigger_channel, HAS_CHANNEL),
}


def page(
    conn: Connection, kind: Kind, limit: int = 50, offset: int = 0, service: str | None = None
) -> Page[Registration]:
    """By pattern, then by the age of the job; with a service, its own jobs alone."""
    column, some = _COLUMNS[kind]
    query = _chosen(column).where(some, *_own(conn, service)).order_by(column, jobs.c.id)
    return Page(
        items=tuple(_read(row) for row in conn.execute(query.limit(limit).offset(offset))),
        total=count(conn, kind, service),
        limit=limit,
        offset=offset,
    )


def count(conn: Connection, kind: Kind, service: str | None = None) -> int:
    _, some = _COLUMNS[kind]
    query = select(func.count()).select_from(jobs).where(some, *_own(conn, service))
    return int(conn.execute(query).scalar_one())


def waiting_for(conn: Connection, path: str, service: str | None = None) -> list[Registration]:
    """The jobs whose pattern fits this path, by name."""
    column, some = _COLUMNS[Kind.WEBHOOK]
    rows = conn.execute(_chosen(column).where(some, *_own(conn, service)))
    found = [_read(row) for row in rows]
    fitting = Patterns((each.pattern, each) for each in found if is_pattern(each.pattern)).match(path)
    return sorted(fitting, key=lambda each: each.job_name)


def _chosen(column: Column[Any]) -> Any:
    on = (jobs.c.schedule_enabled, jobs.c.status, jobs.c.is_paused)
    return select(jobs.c.id, jobs.c.name, column.label("pattern"), *on)


def _own(conn: Connection, service: str | None) -> list[ColumnElement[bool]]:
    return [] if service is None else [owned_by(conn, service)]


def _read(row: Row[Any]) -> Registration:
    return Registration(
        job_id=row.id,
        job_name=row.name,
        pattern=row.pattern,
        listening=bool(row.schedule_enabled) and row.status != JobState.CANCELLED.value,
        paused=bool(row.is_paused),
    )
