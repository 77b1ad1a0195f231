"""What comes back: audit. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from noonday.client.answers.jobs import Change, Job, NextRuns

__all__ = ["Audit", "AuditPage", "RevertRehearsed", "Reverted", "Revision"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    entries: list[Audit]
    total: int
    limit: int
    offset: int
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevertRehearsed:
    dry_run: Literal[True]
    job: Job | None
    changes: list[Change]
    next_runs: NextRuns
    kept_secrets: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reverted:
    """`kept_secrets` names what was secret then: the trail keeps no secrets, so that today's stay."""

    job: Job
    reverted_to: int
    kept_secrets: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """`made` is null where nobody recorded how this revision came about."""

    revision: int
    current: int
    made: Audit | None
    job: Job
