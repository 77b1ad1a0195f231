"""The audit trail on the wire."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from noonday.api.answers import Shape
from noonday.api.rehearsing import Rehearsed
from noonday.api.schedules import instant_text
from noonday.api.schemas import job_json
from noonday.api.shapes import JobShape
from noonday.control.audit import Revision
from noonday.control.secrets import redacted
from noonday.store.audit import AuditEntry

__all__ = [
    "AuditPage",
    "AuditShape",
    "RevertRehearsed",
    "Reverted",
    "RevisionShape",
    "entry_json",
    "revision_json",
]


class AuditShape(Shape):
    """One change: `before` and `after` hold the fields that changed, secrets masked."""

    id: str
    at: datetime
    actor: str
    action: str
    kind: str
    subject_id: str
    revision: int | None
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditPage(Shape):
    entries: list[AuditShape]
    total: int
    limit: int
    offset: int
    next_cursor: str | None


class RevisionShape(Shape):
    """`made` is null where nobody recorded how this revision came about."""

    revision: int
    current: int
    made: AuditShape | None
    job: JobShape


class Reverted(Shape):
    """`kept_secrets` names what was secret then: the trail keeps no secrets, so that today's stay."""

    job: JobShape
    reverted_to: int
    kept_secrets: list[str]


class RevertRehearsed(Rehearsed):
    kept_secrets: list[str]


def entry_json(entry: AuditEntry) -> dict[str, Any]:
    return {
        "id": entry.id,
        "at": instant_text(entry.at),
        "actor": entry.actor,
        "action": entry.action,
        "kind": entry.kind,
        "subject_id": entry.subject_id,
        "revision": entry.revision,
        "before": _shown(entry.before),
        "after": _shown(entry.after),
    }


def revision_json(found: Revision, now: datetime) -> dict[str, Any]:
    return {
        "revision": found.job.revision,
        "current": found.current,
        "made": None if found.made is None else entry_json(found.made),
        "job": job_json(found.job, now),
    }


def _shown(values: Any) -> Any:
    return None if values is None else redacted(dict(values))
