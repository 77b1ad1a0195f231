"""The flags that choose among jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from cyclopts import Parameter

from noonday.cli.values import check_page
from noonday.cli.words import one_of
from noonday.domain import search_fields, searching
from noonday.domain.job import JobState
from noonday.domain.searching import Term
from noonday.store.jobs import JobFilter

__all__ = ["Query", "SearchFlags"]

Query = Annotated[
    str | None,
    Parameter(alias="-q", help='A search, such as "status:failed tag:nightly -tag:old next:<1h".'),
]

_KINDS = ("cron", "interval", "calendar", "immediate", "once", "event", "manual")


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class SearchFlags:
    """Which jobs."""

    status: str | None = None
    "pending, scheduled, running, paused, completed, failed or cancelled."
    tag: str | None = None
    "Only with this tag."
    name: str | None = None
    "Only with this text in the name."
    type: str | None = None
    "cron, interval, calendar, immediate, once, event or manual."
    query: Query = None
    limit: Annotated[int, Parameter(alias="-n")] = 50
    "How many at most [50]."
    offset: int = 0
    "How many to leave out first."

    def filter(self) -> JobFilter:
        check_page(self.limit, self.offset)
        status = self.status and JobState(
            one_of("--status", self.status, [state.value for state in JobState])
        )
        kind = self.type and one_of("--type", self.type, _KINDS)
        return JobFilter(status=status or None, tag=self.tag, name=self.name, schedule_type=kind or None)

    def terms(self, now: datetime) -> tuple[Term, ...]:
        return searching.parse(self.query or "", search_fields.JOBS, now, "--query")
