"""Operations: schedules. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.schedules import Preview
from noonday.client.bodies.schedules import PreviewBody
from noonday.client.calling import AsyncGroup, Call, Group, operation

__all__ = ["AsyncSchedules", "Schedules"]


class SchedulesCalls:
    @operation
    def explain(self, body: PreviewBody, *, idempotency_key: str | None = None) -> Call[Preview]:
        """Explain a schedule.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="POST",
            path="/api/v2/schedules/preview",
            answers={200: Preview},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )


class Schedules(SchedulesCalls, Group):
    """Schedules, at once."""


class AsyncSchedules(SchedulesCalls, AsyncGroup):
    """Schedules, to be awaited."""
