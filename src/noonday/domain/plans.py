"""The values of planning: what it is told, and what it decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from noonday.domain.execution import SkipReason
from noonday.domain.job import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    lookahead: timedelta  # how far ahead of now to plan
    cap: int = 1000  # raw instants looked at in one call


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    scheduled_for: datetime
    available_at: datetime  # later where it is moved to an opening or spread by jitter
    covers_from: datetime  # the raw instant before it, or the anchor


@dataclass(frozen=True, slots=True, kw_only=True)
class Lapse:
    """Instants in a row that do not fire, for one reason."""

    scheduled_for: datetime
    through_at: datetime
    count: int
    exact: bool = True  # False: there are at least so many
    reason: SkipReason
    detail: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    fires: tuple[Fire, ...] = ()
    lapses: tuple[Lapse, ...] = ()
    next_run_at: datetime | None
    fire_count: int  # of the job so far, these fires included


def runs_left(job: Job) -> int | None:
    """How many fires max_runs still allows; None = any number."""
    return None if job.timing.max_runs is None else max(job.timing.max_runs - job.fire_count, 0)
