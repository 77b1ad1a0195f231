"""Instants that do not fire, as rows of history: one row for many in a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import groupby

from noonday.domain.execution import SkipReason
from noonday.domain.job import Job
from noonday.domain.occurrences import Occurrence, count_between, last_until
from noonday.domain.plans import Lapse


def lapses_of(judged: Sequence[Occurrence]) -> tuple[Lapse, ...]:
    """Of occurrences in order, those that carry a reason."""
    made = []
    for reason, group in groupby(judged, key=lambda occurrence: occurrence.skip):
        if reason is not None:
            row = list(group)
            made.append(
                Lapse(
                    scheduled_for=row[0].due_at,
                    through_at=row[-1].due_at,
                    count=len(row),
                    reason=reason,
                    detail=row[0].detail,
                )
            )
    return tuple(made)


UNCOUNTED = "not all of them are counted"


def stretch(
    job: Job, first: datetime, last: datetime, reason: SkipReason, detail: str | None, cap: int = 1000
) -> Lapse:
    """The instants of the job in [first, last] as one lapse; `first` is one of them."""
    through_at = last_until(job.timing, job.id, last, since=first) or first
    count, exact = count_between(job.timing, job.id, first, through_at, cap)
    return Lapse(
        scheduled_for=first,
        through_at=through_at,
        count=max(count, 1),
        exact=exact,
        reason=reason,
        detail=detail if exact else _told(detail),
    )


def joined(lapses: tuple[Lapse, ...], more: Lapse) -> tuple[Lapse, ...]:
    """`more` follows directly on the last of them, which is exact; one reason makes one row."""
    if not lapses or lapses[-1].reason is not more.reason:
        return (*lapses, more)
    last = lapses[-1]
    both = replace(
        last,
        through_at=more.through_at,
        count=last.count + more.count,
        exact=more.exact,
        detail=last.detail if more.exact else _told(last.detail),
    )
    return (*lapses[:-1], both)


def _told(detail: str | None) -> str:
    return f"{detail}; {UNCOUNTED}" if detail else UNCOUNTED
