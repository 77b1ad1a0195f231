"""Operations: executions. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.executions import Execution, ExecutionDetail, ExecutionPage, Output
from noonday.client.calling import AsyncGroup, Call, Group, address, operation
from noonday.client.values import ExecutionState

__all__ = ["AsyncExecutions", "Executions"]


class ExecutionsCalls:
    @operation
    def cancel(self, execution: str, *, idempotency_key: str | None = None) -> Call[Execution]:
        """Cancel what waits, ask what runs to stop.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path=address("/api/v2/executions/{execution}/cancel", execution=execution),
            answers={202: Execution},
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def find(
        self,
        *,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        status: ExecutionState | None = None,
        q: str | None = None,
    ) -> Call[ExecutionPage]:
        """The history of all jobs, newest first.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/executions",
            answers={200: ExecutionPage},
            query={"limit": limit, "offset": offset, "cursor": cursor, "status": status, "q": q},
        )

    @operation
    def find_of_job(
        self,
        job: str,
        *,
        limit: int | None = None,
        offset: int | None = None,
        cursor: str | None = None,
        status: ExecutionState | None = None,
        q: str | None = None,
    ) -> Call[ExecutionPage]:
        """The history of a job, newest first.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/v2/jobs/{job}/executions", job=job),
            answers={200: ExecutionPage},
            query={"limit": limit, "offset": offset, "cursor": cursor, "status": status, "q": q},
        )

    @operation
    def output(self, execution: str, *, after: int | None = None, attempt: int | None = None) -> Call[Output]:
        """What a run writes, as it runs.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/v2/executions/{execution}/output", execution=execution),
            answers={200: Output},
            query={"after": after, "attempt": attempt},
        )

    @operation
    def read(self, execution: str) -> Call[ExecutionDetail]:
        """One execution with its attempts.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/v2/executions/{execution}", execution=execution),
            answers={200: ExecutionDetail},
        )


class Executions(ExecutionsCalls, Group):
    """Executions, at once."""


class AsyncExecutions(ExecutionsCalls, AsyncGroup):
    """Executions, to be awaited."""
