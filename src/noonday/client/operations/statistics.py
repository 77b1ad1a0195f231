"""Operations: statistics. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from datetime import datetime

from noonday.client.answers.statistics import Forecast, JobStats, OverallStats, Upcoming
from noonday.client.calling import AsyncGroup, Call, Group, address, operation

__all__ = ["AsyncStatistics", "Statistics"]


class StatisticsCalls:
    @operation
    def forecast(
        self,
        *,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        limit: int | None = None,
    ) -> Call[Forecast]:
        """What will run, of all jobs.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/forecast",
            answers={200: Forecast},
            query={"from": from_, "to": to, "limit": limit},
        )

    @operation
    def job_stats(self, job: str, *, days: int | None = None) -> Call[JobStats]:
        """How a job fares.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/v2/jobs/{job}/stats", job=job),
            answers={200: JobStats},
            query={"days": days},
        )

    @operation
    def overall_stats(self, *, days: int | None = None) -> Call[OverallStats]:
        """How all jobs fare.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/api/v2/stats", answers={200: OverallStats}, query={"days": days})

    @operation
    def upcoming(
        self, job: str, *, count: int | None = None, until: str | datetime | None = None
    ) -> Call[Upcoming]:
        """When a job will run.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path=address("/api/v2/jobs/{job}/upcoming", job=job),
            answers={200: Upcoming},
            query={"count": count, "until": until},
        )


class Statistics(StatisticsCalls, Group):
    """Statistics, at once."""


class AsyncStatistics(StatisticsCalls, AsyncGroup):
    """Statistics, to be awaited."""
