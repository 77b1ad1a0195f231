"""A page of jobs as people look at it: with their last runs, and what else there is to choose from."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import Connection

from noonday.domain.execution import ExecutionState
from noonday.domain.job import Job, JobId
from noonday.domain.searching import Term
from noonday.store import facets, glances, jobs, strips
from noonday.store.database import Database
from noonday.store.facets import Counted, Facets
from noonday.store.history import ExecutionFilter
from noonday.store.jobs import JobFilter
from noonday.store.pages import Mark, Page
from noonday.store.strips import Bar

__all__ = ["Bar", "Counted", "Facets", "Listed", "Listing", "success_rate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    page: Page[Job]
    strips: Mapping[JobId, tuple[Bar, ...]]
    counted: Counted
    all: int  # jobs there are, whatever was searched for


class Listing:
    def __init__(self, db: Database) -> None:
        self._db = db

    async def look(
        self,
        wanted: JobFilter,
        *,
        limit: int,
        offset: int,
        order: str,
        soon: Mapping[str, Term] | None = None,
    ) -> Listed:
        """Two looks at once: to count what can be chosen takes as long as the page itself.

        A search looks through the jobs once, before: until it has found all, or as many as are counted.
        """
        every = JobFilter(service=wanted.service)
        searched = wanted != every
        stretch, whole = None, False
        if searched:
            stretch, whole = await self._db.read(lambda conn: jobs.some(conn, wanted, facets.STRETCH))

        def rows(conn: Connection) -> tuple[Page[Job], Mapping[JobId, tuple[Bar, ...]]]:
            found = stretch if stretch and whole else wanted
            known = facets.STRETCH if searched and not whole else None
            page = jobs.find(conn, found, limit, offset, order, at_least=known)
            return page, strips.strips(conn, [job.id for job in page.items])

        def choices(conn: Connection) -> tuple[Counted, int | None]:
            return facets.facets(conn, wanted, soon, stretch), jobs.count(conn, every) if searched else None

        (page, bars), (found, others) = await asyncio.gather(self._db.read(rows), self._db.read(choices))
        return Listed(page=page, strips=bars, counted=found, all=page.total if others is None else others)

    async def of_runs(self, wanted: ExecutionFilter, *, after: Mark | None = None) -> Facets:
        """Beside a glance at executions: whose they are."""
        return await self._db.read(lambda conn: glances.by_job(conn, wanted, after))

    async def strips(self, ids: Collection[JobId], runs: int = 30) -> Mapping[JobId, tuple[Bar, ...]]:
        return await self._db.read(lambda conn: strips.strips(conn, ids, runs))


def success_rate(bars: Collection[Bar]) -> float | None:
    """0..1 of those that came to an end by themselves; None if none did."""
    good = sum(bar.state is ExecutionState.COMPLETED for bar in bars)
    bad = sum(bar.state is ExecutionState.FAILED for bar in bars)
    return good / (good + bad) if good + bad else None
