"""Operations: admin. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.admin import ActionAnswer, SchedulerPage, SchedulersHealth
from noonday.client.bodies.admin import ActionBody
from noonday.client.calling import AsyncGroup, Call, Group, operation

__all__ = ["Admin", "AsyncAdmin"]


class AdminCalls:
    @operation
    def act(self, body: ActionBody, *, idempotency_key: str | None = None) -> Call[ActionAnswer]:
        """Start, stop, pause, resume, restart or trigger one.

        Needs the right run: operator, admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path="/api/admin/schedulers",
            answers={200: ActionAnswer},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def find(self, *, limit: int | None = None, offset: int | None = None) -> Call[SchedulerPage]:
        """List recurring jobs, by name.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/admin/schedulers",
            answers={200: SchedulerPage},
            query={"limit": limit, "offset": offset},
        )

    @operation
    def health(self) -> Call[SchedulersHealth]:
        """How all recurring jobs fare.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/admin/schedulers/health",
            answers={200: SchedulersHealth, 503: SchedulersHealth},
        )


class Admin(AdminCalls, Group):
    """Admin, at once."""


class AsyncAdmin(AdminCalls, AsyncGroup):
    """Admin, to be awaited."""
