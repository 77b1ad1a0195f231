"""Operations: health. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.health import Live, Ready, SchedulerHealth
from noonday.client.calling import AsyncGroup, Call, Group, operation

__all__ = ["AsyncHealth", "Health"]


class HealthCalls:
    @operation
    def live(self) -> Call[Live]:
        """The process answers."""
        return Call(method="GET", path="/health/live", answers={200: Live})

    @operation
    def metrics(self) -> Call[str]:
        """Metrics of this instance.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/metrics", answers={200: str})

    @operation
    def ready(self) -> Call[Ready]:
        """Requests may be sent here."""
        return Call(method="GET", path="/health/ready", answers={200: Ready, 503: Ready})

    @operation
    def ready_health(self) -> Call[Ready]:
        """As ready, for older checks."""
        return Call(method="GET", path="/health", answers={200: Ready, 503: Ready})

    @operation
    def scheduler(self) -> Call[SchedulerHealth]:
        """How the scheduler fares.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/scheduler/health",
            answers={200: SchedulerHealth, 503: SchedulerHealth},
        )


class Health(HealthCalls, Group):
    """Health, at once."""


class AsyncHealth(HealthCalls, AsyncGroup):
    """Health, to be awaited."""
