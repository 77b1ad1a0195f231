"""Operations: audit. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from datetime import datetime

from noonday.client.answers.audit import AuditPage, Reverted, RevertRehearsed, Revision
from noonday.client.bodies.audit import RevertBody
from noonday.client.calling import AsyncGroup, Call, Group, address, operation

__all__ = ["AsyncAudit", "Audit"]


class AuditCalls:
    @operation
    def read_revision(self, job: str, number: int) -> Call[Revision]:
        """A job as it was.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/v2/jobs/{job}/revisions/{number}", job=job, number=number),
            answers={200: Revision},
        )

    @operation
    def revert(
        self,
        job: str,
        body: RevertBody,
        *,
        dry_run: bool | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Reverted | RevertRehearsed]:
        """Back to an earlier revision.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/revert", job=job),
            answers={200: Reverted | RevertRehearsed},
            body=body,
            query={"dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )

    @operation
    def trail(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        q: str | None = None,
        kind: str | None = None,
        job: str | None = None,
    ) -> Call[AuditPage]:
        """Every change, newest first.

        Needs the right access: admin.
        """
        return Call(
            method="GET",
            path="/api/v2/audit",
            answers={200: AuditPage},
            query={
                "limit": limit,
                "offset": offset,
                "cursor": cursor,
                "actor": actor,
                "action": action,
                "since": since,
                "until": until,
                "q": q,
                "kind": kind,
                "job": job,
            },
        )

    @operation
    def trail_of_job(
        self,
        job: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        actor: str | None = None,
        action: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        q: str | None = None,
    ) -> Call[AuditPage]:
        """Every change of a job, newest first.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/v2/jobs/{job}/audit", job=job),
            answers={200: AuditPage},
            query={
                "limit": limit,
                "offset": offset,
                "cursor": cursor,
                "actor": actor,
                "action": action,
                "since": since,
                "until": until,
                "q": q,
            },
        )


class Audit(AuditCalls, Group):
    """Audit, at once."""


class AsyncAudit(AuditCalls, AsyncGroup):
    """Audit, to be awaited."""
