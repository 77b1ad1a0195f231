"""Operations: jobs. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from typing import Any, Literal

from noonday.client.answers.executions import Execution
from noonday.client.answers.jobs import BulkDone, BulkPreview, Job, JobPage, Rehearsed, Started
from noonday.client.bodies.jobs import BulkBody, JobBody, PauseBody, ResumeBody, RunBody
from noonday.client.calling import AsyncGroup, Call, Group, address, operation
from noonday.client.values import JobState

__all__ = ["AsyncJobs", "Jobs"]


class JobsCalls:
    @operation
    def act_on_many(
        self, body: BulkBody, *, dry_run: bool | None = None, idempotency_key: str | None = None
    ) -> Call[BulkDone | BulkPreview]:
        """Pause, resume, cancel, run, delete, enable or disable many jobs.

        Running needs the right to run, deleting the right to edit, all else the right to operate.

        Needs the right run: operator, admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path="/api/v2/jobs/bulk",
            answers={200: BulkDone | BulkPreview},
            body=body,
            query={"dry_run": dry_run},
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def cancel(
        self,
        job: str,
        *,
        dry_run: bool | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Job | Rehearsed]:
        """End it for good, what runs included.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/cancel", job=job),
            answers={200: Job | Rehearsed},
            query={"dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )

    @operation
    def change(
        self, job: str, body: JobBody, *, dry_run: bool | None = None, if_match: str | None = None
    ) -> Call[Job | Rehearsed]:
        """Change the fields that are named.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="PUT",
            path=address("/api/v2/jobs/{job}", job=job),
            answers={200: Job | Rehearsed},
            body=body,
            query={"dry_run": dry_run},
            headers={"If-Match": if_match},
        )

    @operation
    def create(
        self, body: JobBody, *, dry_run: bool | None = None, idempotency_key: str | None = None
    ) -> Call[Rehearsed | Job]:
        """Create a job.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="POST",
            path="/api/v2/jobs",
            answers={200: Rehearsed, 201: Job},
            body=body,
            query={"dry_run": dry_run},
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def delete(
        self, job: str, *, dry_run: bool | None = None, if_match: str | None = None
    ) -> Call[Rehearsed | None]:
        """Delete a job and its history.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="DELETE",
            path=address("/api/v2/jobs/{job}", job=job),
            answers={200: Rehearsed, 204: None},
            query={"dry_run": dry_run},
            headers={"If-Match": if_match},
        )

    @operation
    def disable(
        self,
        job: str,
        *,
        dry_run: bool | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Job | Rehearsed]:
        """Switch its schedule off; it still runs when asked.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/disable", job=job),
            answers={200: Job | Rehearsed},
            query={"dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )

    @operation
    def enable(
        self,
        job: str,
        *,
        dry_run: bool | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Job | Rehearsed]:
        """Switch its schedule on.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/enable", job=job),
            answers={200: Job | Rehearsed},
            query={"dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )

    @operation
    def find(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        status: JobState | None = None,
        priority: int | None = None,
        schedule_type: Literal["cron", "interval", "calendar", "immediate", "once", "event", "manual"]
        | None = None,
        tag: str | None = None,
        name: str | None = None,
        q: str | None = None,
        source_id: str | None = None,
        service: str | None = None,
        enabled: bool | None = None,
        order: str | None = None,
    ) -> Call[JobPage]:
        """List jobs, newest first.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/jobs",
            answers={200: JobPage},
            query={
                "limit": limit,
                "offset": offset,
                "cursor": cursor,
                "status": status,
                "priority": priority,
                "schedule_type": schedule_type,
                "tag": tag,
                "name": name,
                "q": q,
                "source_id": source_id,
                "service": service,
                "enabled": enabled,
                "order": order,
            },
        )

    @operation
    def force_run(
        self,
        job: str,
        body: RunBody | None = None,
        *,
        wait: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Execution | Started]:
        """Run it now.

        Needs the right run: operator, admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/force-run", job=job),
            answers={200: Execution, 202: Started},
            patience=wait or 0,
            body=body,
            headers={"Prefer": None if wait is None else f"wait={wait}", "Idempotency-Key": idempotency_key},
        )

    @operation
    def patch(
        self, job: str, body: dict[str, Any], *, dry_run: bool | None = None, if_match: str | None = None
    ) -> Call[Job | Rehearsed]:
        """Change the fields that are named, and within objects too.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="PATCH",
            path=address("/api/v2/jobs/{job}", job=job),
            answers={200: Job | Rehearsed},
            body=body,
            query={"dry_run": dry_run},
            headers={"If-Match": if_match},
        )

    @operation
    def pause(
        self,
        job: str,
        body: PauseBody | None = None,
        *,
        dry_run: bool | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Job | Rehearsed]:
        """Let nothing of it fire until resumed, or until then.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/pause", job=job),
            answers={200: Job | Rehearsed},
            body=body,
            query={"dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )

    @operation
    def read(self, job: str) -> Call[Job]:
        """Read a job.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path=address("/api/v2/jobs/{job}", job=job), answers={200: Job})

    @operation
    def resume(
        self,
        job: str,
        body: ResumeBody | None = None,
        *,
        catch_up: bool | None = None,
        dry_run: bool | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Job | Rehearsed]:
        """Go on with the next future time.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/resume", job=job),
            answers={200: Job | Rehearsed},
            body=body,
            query={"catch_up": catch_up, "dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )

    @operation
    def retry(
        self, job: str, *, wait: int | None = None, idempotency_key: str | None = None
    ) -> Call[Execution | Started]:
        """Run again what failed.

        Needs the right run: operator, admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/retry", job=job),
            answers={200: Execution, 202: Started},
            patience=wait or 0,
            headers={"Prefer": None if wait is None else f"wait={wait}", "Idempotency-Key": idempotency_key},
        )

    @operation
    def skip_next(
        self,
        job: str,
        *,
        dry_run: bool | None = None,
        if_match: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Job | Rehearsed]:
        """Let its next run not happen.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/jobs/{job}/skip-next", job=job),
            answers={200: Job | Rehearsed},
            query={"dry_run": dry_run},
            headers={"If-Match": if_match, "Idempotency-Key": idempotency_key},
        )


class Jobs(JobsCalls, Group):
    """Jobs, at once."""


class AsyncJobs(JobsCalls, AsyncGroup):
    """Jobs, to be awaited."""
