"""A schedule in words with its next times, before and after it is saved."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from noonday.domain import explain as words
from noonday.domain.occurrences import check, upcoming
from noonday.domain.schedule import Timing


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    words: str
    times: tuple[datetime, ...]


def preview(timing: Timing, key: str, count: int, after: datetime) -> Preview:
    """Refuses a wrong schedule with Invalid; `key` is the job's id, by which H is spread."""
    check(timing)
    return Preview(words=words.explain(timing, key), times=tuple(upcoming(timing, key, after, count)))
