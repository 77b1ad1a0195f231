"""Operations: scheduler. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from noonday.client.answers.scheduler import (
    Distribution,
    Engines,
    Move,
    Peers,
    Rebalance,
    Roster,
    Summary,
    Workers,
)
from noonday.client.bodies.scheduler import DrainBody, FinishBody, MoveBody, RebalanceBody, WishBody
from noonday.client.calling import AsyncGroup, Call, Group, operation

__all__ = ["AsyncScheduler", "Scheduler"]


class SchedulerCalls:
    @operation
    def distribution(self, *, slot_minutes: int | None = None) -> Call[Distribution]:
        """How many runs start when, over the coming day.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/scheduler/distribution",
            answers={200: Distribution},
            query={"slot_minutes": slot_minutes},
        )

    @operation
    def drain(
        self,
        body: DrainBody | None = None,
        *,
        instance: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Peers]:
        """Let workers finish what they run and take nothing new.

        Needs the right manage: admin.
        """
        return Call(
            method="POST",
            path="/api/v2/scheduler/drain",
            answers={202: Peers},
            body=body,
            query={"instance": instance},
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def engine(self, *, hours: float | None = None) -> Call[Engines]:
        """Version 1 and 2 side by side.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET", path="/api/v2/scheduler/engine", answers={200: Engines}, query={"hours": hours}
        )

    @operation
    def finish(self, body: FinishBody | None = None, *, idempotency_key: str | None = None) -> Call[Engines]:
        """End the migration, or undo.

        Needs the right manage: admin.
        """
        return Call(
            method="POST",
            path="/api/v2/scheduler/engine/finish",
            answers={200: Engines},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def instances(self) -> Call[Roster]:
        """Every process and who leads.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/api/v2/scheduler/instances", answers={200: Roster})

    @operation
    def metrics(self, *, hours: float | None = None) -> Call[Summary]:
        """The scheduler in figures.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET", path="/api/v2/scheduler/metrics", answers={200: Summary}, query={"hours": hours}
        )

    @operation
    def move(self, body: MoveBody, *, idempotency_key: str | None = None) -> Call[Move]:
        """Move jobs to the other engine.

        Needs the right manage: admin.
        """
        return Call(
            method="POST",
            path="/api/v2/scheduler/engine/move",
            answers={200: Move},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def preview_rebalance(
        self, body: WishBody | None = None, *, idempotency_key: str | None = None
    ) -> Call[Rebalance]:
        """Which jobs would be moved to spread the load; nothing is.

        Needs the right operate: operator, admin.
        """
        return Call(
            method="POST",
            path="/api/v2/scheduler/rebalance/preview",
            answers={200: Rebalance},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def rebalance(
        self, body: RebalanceBody | None = None, *, idempotency_key: str | None = None
    ) -> Call[Rebalance]:
        """Move jobs within their rhythm, so that the load is spread.

        Needs the right manage: admin.
        """
        return Call(
            method="POST",
            path="/api/v2/scheduler/rebalance",
            answers={200: Rebalance},
            body=body,
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def resume(
        self,
        body: DrainBody | None = None,
        *,
        instance: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Peers]:
        """Let workers take work again.

        Needs the right manage: admin.
        """
        return Call(
            method="POST",
            path="/api/v2/scheduler/resume",
            answers={202: Peers},
            body=body,
            query={"instance": instance},
            headers={"Idempotency-Key": idempotency_key},
        )

    @operation
    def workers(self) -> Call[Workers]:
        """The slots of all living workers.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/api/v2/scheduler/workers", answers={200: Workers})


class Scheduler(SchedulerCalls, Group):
    """Scheduler, at once."""


class AsyncScheduler(SchedulerCalls, AsyncGroup):
    """Scheduler, to be awaited."""
