"""Operations: registry. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.registry import (
    Done,
    DoneWithJob,
    RegisteredJob,
    RegisteredJobs,
    Registration,
    RegistrationOfAll,
    RegistryExecution,
    RegistryHistory,
    RegistryStats,
    Triggered,
)
from noonday.client.bodies.jobs import RunBody
from noonday.client.bodies.registry import CronBody, RegisterAllBody, RegisterBody
from noonday.client.calling import AsyncGroup, Call, Group, address, operation
from noonday.client.values import ExecutionState

__all__ = ["AsyncRegistry", "Registry"]


class RegistryCalls:
    @operation
    def change_cron(self, job: str, body: CronBody) -> Call[DoneWithJob]:
        """Give it another schedule, which stays when its service declares it again.

        Needs the right edit: operator, admin.
        """
        return Call(
            method="PUT", path=address("/api/jobs/{job}/cron", job=job), answers={200: DoneWithJob}, body=body
        )

    @operation
    def delete(self, job: str) -> Call[Done]:
        """Delete a job and its history.

        Needs the right edit: operator, admin.
        """
        return Call(method="DELETE", path=address("/api/jobs/{job}", job=job), answers={200: Done})

    @operation
    def disable(self, job: str, *, idempotency_key: str | None = None) -> Call[DoneWithJob]:
        """Let its schedule rest.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/jobs/{job}/disable", job=job),
            answers={200: DoneWithJob},
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def enable(self, job: str, *, idempotency_key: str | None = None) -> Call[DoneWithJob]:
        """Let its schedule fire again, from the next time on.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/jobs/{job}/enable", job=job),
            answers={200: DoneWithJob},
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def find(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        service: str | None = None,
        enabled: bool | None = None,
        name: str | None = None,
    ) -> Call[RegisteredJobs]:
        """List jobs, by name.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/jobs",
            answers={200: RegisteredJobs},
            query={"limit": limit, "offset": offset, "service": service, "enabled": enabled, "name": name},
        )

    @operation
    def history(
        self,
        job: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        status: ExecutionState | None = None,
    ) -> Call[RegistryHistory]:
        """What ran, newest first, with the results in full.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/jobs/{job}/history", job=job),
            answers={200: RegistryHistory},
            query={"limit": limit, "offset": offset, "status": status},
        )

    @operation
    def read(self, job: str) -> Call[RegisteredJob]:
        """Read a job.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path=address("/api/jobs/{job}", job=job), answers={200: RegisteredJob})

    @operation
    def register(self, body: RegisterBody, *, idempotency_key: str | None = None) -> Call[Registration]:
        """Declare a job: create it, or bring it up to date where nobody has changed it.

        Needs the right register: admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path="/api/jobs/register",
            answers={200: Registration, 201: Registration},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def register_all(
        self, body: RegisterAllBody, *, idempotency_key: str | None = None
    ) -> Call[RegistrationOfAll]:
        """Declare all jobs of a service, and say what becomes of those it declares no more.

        Needs the right register: admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path="/api/jobs/register/all",
            answers={200: RegistrationOfAll},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def stats(self, job: str, *, days: int | None = None) -> Call[RegistryStats]:
        """How it fared over some days.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/jobs/{job}/stats", job=job),
            answers={200: RegistryStats},
            query={"days": days},
        )

    @operation
    def trigger(
        self,
        job: str,
        body: RunBody | None = None,
        *,
        wait: int | None = None,
        idempotency_key: str | None = None,
    ) -> Call[RegistryExecution | Triggered]:
        """Run it now.

        Needs the right run: operator, admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path=address("/api/jobs/{job}/trigger", job=job),
            answers={200: RegistryExecution, 202: Triggered},
            patience=wait or 0,
            body=body,
            headers={"Prefer": None if wait is None else f"wait={wait}", "Idempotency-Key": idempotency_key},
        )


class Registry(RegistryCalls, Group):
    """Registry, at once."""


class AsyncRegistry(RegistryCalls, AsyncGroup):
    """Registry, to be awaited."""
