"""Operations: statistics. Made by `make openapi`: change the routes, not this file."""

from __future__ import annotations

from datetime import datetime

from noonday.client.answers.statistics import Forecast, JobStats, Load, OverallStats, Timeline, Upcoming
from noonday.client.calling import AsyncGroup, Call, Group, address, operation
from noonday.client.values import Grouping

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
    def load(self, *, from_: str | datetime | None = None, to: str | datetime | None = None) -> Call[Load]:
        """How full each hour was and will be.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/api/v2/load", answers={200: Load}, query={"from": from_, "to": to})

    @operation
    def overall_stats(self, *, days: int | None = None) -> Call[OverallStats]:
        """How all jobs fare.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(method="GET", path="/api/v2/stats", answers={200: OverallStats}, query={"days": days})

    @operation
    def timeline(
        self,
        *,
        from_: str | datetime | None = None,
        to: str | datetime | None = None,
        q: str | None = None,
        group_by: Grouping | None = None,
        limit: int | None = None,
        offset: int | None = None,
    ) -> Call[Timeline]:
        """Past, running and coming runs, a track for each job.

        Needs the right read: viewer, operator, admin, service for its own jobs.
        """
        return Call(
            method="GET",
            path="/api/v2/timeline",
            answers={200: Timeline},
            query={"from": from_, "to": to, "q": q, "group_by": group_by, "limit": limit, "offset": offset},
        )

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
