"""What people do to jobs, as the audit trail keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from noonday.domain.job import Job
from noonday.store.audit import AuditEntry

__all__ = ["NOBODY", "entry"]

NOBODY: Final = "anonymous"


def entry(
    now: datetime,
    by: str | None,
    action: str,
    job: Job,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
) -> AuditEntry:
    return AuditEntry(
        at=now,
        actor=by or NOBODY,
        action=action,
        kind="job",
        subject_id=job.id,
        before=before,
        after=after,
        revision=job.revision,
    )
